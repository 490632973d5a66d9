"""`kill -9` at random moments: whatever is killed and started again must end as if nobody had disturbed it.

`python -m tests.kills` is the long run; a few kills are a test of every test run.
"""

GRAPH = "synthetic:nodes=300,edges=900,features=32,classes=4"  # small, and there without a long import
