"""What is averaged: functions with kinks in a normal form, and forms that keep their digits."""
