"""The page, the figures and the tables of several studies beside one another."""
