"""The sections of ``resnet_action.tex``, as functions that give their paragraphs."""

DEPTH = 2  # of the network whose matrices the text shows
