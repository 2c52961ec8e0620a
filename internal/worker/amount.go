package worker

// Amount is a number that is fixed, or one that adapts between bounds.
type Amount struct {
	N        int // of one that adapts the number to begin with
	Min, Max int // 0: it is fixed
}

// Adapts reports whether the number changes by itself.
func (a Amount) Adapts() bool { return a.Max > 0 }

// Most returns the highest that it can be.
func (a Amount) Most() int { return max(a.N, a.Max) }

// Least returns the lowest that it can be.
func (a Amount) Least() int {
	if a.Adapts() {
		return a.Min
	}
	return a.N
}

// Settle brings the number to begin with between its bounds.
func (a *Amount) Settle() {
	if a.Adapts() {
		a.N = min(max(a.N, a.Min), a.Max)
	}
}
