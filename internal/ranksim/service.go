package ranksim

import (
	"math/rand/v2"
	"time"
)

// Service draws how long handlers run.
type Service interface {
	// Draw returns the time of one handler on a worker of ordinary speed. It
	// takes its chance from random alone.
	Draw(random *rand.Rand) time.Duration
}

// Exponential is a memoryless time with this mean.
type Exponential time.Duration

// Draw implements Service.
func (e Exponential) Draw(random *rand.Rand) time.Duration {
	return time.Duration(random.ExpFloat64() * float64(e))
}

// Constant is always the same time.
type Constant time.Duration

// Draw implements Service.
func (c Constant) Draw(*rand.Rand) time.Duration { return time.Duration(c) }

// Mixture is mostly one kind of work and sometimes another, in no order.
type Mixture struct {
	// Often and Rare are the two kinds.
	Often, Rare Service
	// Share is how many of the calls are rare, from 0 to 1.
	Share float64
}

// Draw implements Service.
func (m Mixture) Draw(random *rand.Rand) time.Duration {
	if random.Float64() < m.Share {
		return m.Rare.Draw(random)
	}
	return m.Often.Draw(random)
}

// Mixed is the mixture of the tables in docs: 95 % short handlers of 10 ms and
// 5 % long ones of 210 ms, both exponential; the mean is 20 ms.
func Mixed() Mixture {
	return Mixture{
		Often: Exponential(10 * time.Millisecond),
		Rare:  Exponential(210 * time.Millisecond),
		Share: 0.05,
	}
}
