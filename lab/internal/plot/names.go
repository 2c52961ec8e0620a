package plot

// apart moves sorted places on a line until each is at least gap from the next,
// as little as can be: those that would touch move as a block, about the middle
// of where they would be.
func apart(wanted []float64, gap float64) []float64 {
	type block struct {
		sum float64 // of the places of its first member that each member would like
		n   int
	}
	var blocks []block
	first := func(b block) float64 { return b.sum / float64(b.n) }
	for _, w := range wanted {
		blocks = append(blocks, block{w, 1})
		for len(blocks) > 1 {
			a, b := blocks[len(blocks)-2], blocks[len(blocks)-1]
			if first(a)+float64(a.n)*gap <= first(b) {
				break
			}
			blocks = blocks[:len(blocks)-1]
			blocks[len(blocks)-1] = block{a.sum + b.sum - float64(a.n*b.n)*gap, a.n + b.n}
		}
	}
	var places []float64
	for _, b := range blocks {
		for i := range b.n {
			places = append(places, first(b)+float64(i)*gap)
		}
	}
	return places
}
