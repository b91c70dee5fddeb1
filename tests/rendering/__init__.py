"""What a reader's screen would show: LaTeX through KaTeX, pages through headless Chromium.

Both are external programs that a machine may lack. `katex_missing` and `chromium_missing` say so
in one line, for `pytest.skip`.
"""

import fcntl
import json
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent


@cache
def katex_missing() -> str | None:
    """Why KaTeX cannot run here, or None; installs it with npm where only KaTeX is missing."""
    if shutil.which("node") is None:
        return "node is not installed"
    # Parallel test workers get here together: one installs, the others wait for it.
    with open(HERE / "package.json") as manifest:
        fcntl.flock(manifest, fcntl.LOCK_EX)
        wanted = json.load(manifest)["dependencies"]["katex"]
        if _installed_katex() == wanted:
            return None
        if shutil.which("npm") is None:
            return "katex is not installed, nor is npm to install it"
        options = "--no-audit --no-fund --no-save --fetch-retries=1 --fetch-timeout=60000"
        subprocess.run(["npm", "install", *options.split()], cwd=HERE, capture_output=True)
    if _installed_katex() != wanted:
        return "katex is not installed; run npm install in tests/rendering"
    return None


def _installed_katex() -> str | None:
    package = HERE / "node_modules" / "katex" / "package.json"
    return json.loads(package.read_text())["version"] if package.exists() else None


def katex_failures(strings: dict[str, str]) -> dict[str, str]:
    """KaTeX's message for each of the named LaTeX strings that strict KaTeX cannot render."""
    if reason := katex_missing():
        raise RuntimeError(reason)
    done = subprocess.run(
        ["node", "katex_check.mjs"],
        cwd=HERE,
        input=json.dumps([{"name": name, "latex": latex} for name, latex in strings.items()]),
        capture_output=True,
        text=True,
        timeout=300,
    )
    if done.returncode != 0:
        raise RuntimeError(f"katex_check.mjs failed: {done.stderr.strip()}")
    return {failure["name"]: failure["message"] for failure in json.loads(done.stdout)}


@cache
def chromium_missing() -> str | None:
    """Why Chromium cannot run here, or None."""
    if (browser := _browser()) is None:
        return "chromium is not installed"
    # Ubuntu's chromium-browser may be a stub that only asks for the snap.
    if subprocess.run([browser, "--version"], capture_output=True, timeout=60).returncode != 0:
        return f"{browser} does not start"
    return None


def chromium_screenshot(html: Path, png: Path, width: int = 1200, height: int = 1600) -> None:
    """Write what Chromium shows of the page `html`, in a window of this size, to `png`."""
    # Removed first, so that a file from an earlier call is never taken for this one's.
    png.unlink(missing_ok=True)
    stdout, stderr = _chromium(
        html, f"--screenshot={png.resolve()}", f"--window-size={width},{height}"
    )
    if not png.exists():
        raise RuntimeError(f"chromium wrote no screenshot of {html}: {stdout}{stderr}")


def chromium_dom(html: Path) -> str:
    """The page `html` as Chromium holds it after loading, serialised as HTML."""
    return _chromium(html, "--dump-dom")[0]


def _browser() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


def _chromium(html: Path, *options: str) -> tuple[str, str]:
    browser = _browser()
    if browser is None:
        raise RuntimeError("chromium is not installed")
    # Chromium's helper processes may still write to the profile for a moment after it ends.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--hide-scrollbars",
            # No name resolves: a page that needs the network shows its gaps.
            "--host-resolver-rules=MAP * ~NOTFOUND",
            f"--user-data-dir={profile}",
            *options,
            html.resolve().as_uri(),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise RuntimeError(f"chromium failed on {html}: {done.stderr.strip()}")
    return done.stdout, done.stderr
