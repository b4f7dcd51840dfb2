"""Explorer: a local web application that answers each change of a question with a proven plan.

question.py    JSON of the browser -> Problem, its command line and its Python lines
jobs.py        the kinds of jobs, and their answers: a plan as JSON and as pieces of the page
worker.py      a process that runs one job at a time, in their order, and can be interrupted
server.py      the web server: token, Host, Origin and sizes
page.py        the page
verb.py        ``placement explore``
"""
