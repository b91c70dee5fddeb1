"""The main job, its folder and its page."""
