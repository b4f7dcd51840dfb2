module spanner_check

go 1.25.0

require github.com/cloudspannerecosystem/memefish v0.8.1
