module github.com/cabrank/cabrank/packaging

go 1.26.0
