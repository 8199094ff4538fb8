"""The main job: plan cells to a budget, run them, write results.json and the report."""
