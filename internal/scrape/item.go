package scrape

import (
	"bytes"
	"cmp"
	"math"
	"slices"

	dto "github.com/prometheus/client_model/go"
)

// item is what one process has of a cell.
//
// Guarded by Store.mu.
type item struct {
	process *Process
	cell    *cell // nil when it has left
	kind    kind
	seen    uint64 // the page that had it last
	held    int    // bytes, of Process.held

	value  *value   // of a number
	sum    *value   // of a histogram or summary, as the next
	count  *value   // nil if the page has none
	bounds []*value // ascending

	native, nextNative, baseNative *native // as now, next and base; nil if it has none
}

// value is one sample.
type value struct {
	bound     float64 // of a bucket or quantile
	now, next float64 // by the last whole page, and by the one that is being read
	base      float64 // what was counted before the process began at zero again
	seen      uint64  // the page that had it last
	held      int     // bytes of its exemplar
	exemplar  []byte  // as it is written; nil if there is none

	example *dto.Exemplar // of a page in protobuf
}

func (v *value) total() float64 {
	if v == nil {
		return 0
	}
	return v.base + v.now
}

// part returns the place of a sample without a bound.
func (i *item) part(p part) *value {
	at := &i.value
	switch p {
	case partSum:
		at = &i.sum
	case partCount:
		at = &i.count
	case partValue, partBucket, partQuantile, partNone:
	}
	if *at == nil {
		*at = &value{}
		i.hold(valueSize)
	}
	return *at
}

// bound returns the place of a bucket or quantile, nil if the process has too many.
func (i *item) bound(at float64) *value {
	n, ok := slices.BinarySearchFunc(i.bounds, at, func(v *value, at float64) int { return cmp.Compare(v.bound, at) })
	if !ok {
		if i.process.bounds >= mostPageSeries {
			i.process.store.conflicts.Series++
			i.process.leftOut++
			return nil
		}
		if !i.process.hasRoom(valueSize) {
			i.process.overfull()
			return nil
		}
		i.process.bounds++
		i.hold(valueSize)
		i.bounds = slices.Insert(i.bounds, n, &value{bound: at})
	}
	return i.bounds[n]
}

// set takes the value of a sample; false if the page has had it already.
func (i *item) set(v *value, to float64, exemplar []byte) bool {
	page := i.process.pages
	if v.seen == page {
		return false
	}
	v.next, v.seen, i.seen = to, page, page
	if !bytes.Equal(v.exemplar, exemplar) && i.mayExemplify(v, len(exemplar)) {
		v.exemplar = bytes.Clone(exemplar)
	}
	return true
}

// mayExemplify takes the exemplar of a value away, and reports whether another one of so
// many bytes has room. A value counts without it.
func (i *item) mayExemplify(v *value, size int) bool {
	i.hold(-v.held)
	v.exemplar, v.example, v.held = nil, nil, 0
	if size > mostExampleBytes || !i.process.hasRoom(size) {
		return false
	}
	v.held = size
	i.hold(size)
	return true
}

// commit makes what the page has shown what is shown. Of a histogram that was cut by a
// fault nothing is taken: its parts belong together.
func (i *item) commit(broken bool) {
	if i.seen != i.process.pages {
		return
	}
	switch i.kind {
	case counter:
		i.commitCounter()
	case histogram:
		i.commitHistogram(broken)
	case summary:
		i.commitSummary()
	case gauge, untyped, info:
		i.value.now = i.value.next
	}
}

func (i *item) commitCounter() {
	v := i.value
	if math.IsNaN(v.next) {
		return
	}
	if v.next < v.now {
		v.base += v.now
	}
	v.now = v.next
}

// counted returns the number of values of a histogram: the last bucket has it, too. It
// is nil if there is neither.
func (i *item) counted() *value {
	if n := len(i.bounds); i.count == nil && n > 0 {
		return i.bounds[n-1]
	}
	return i.count
}

// nth returns the nth value of a histogram, from 0 on; nil for one that it does not
// have.
func (i *item) nth(n int) *value {
	switch n {
	case 0:
		return i.count
	case 1:
		return i.sum
	}
	return i.bounds[n-2]
}

func (i *item) commitHistogram(broken bool) {
	counted, page, all := i.counted(), i.process.pages, len(i.bounds)+2
	if counted == nil || math.IsNaN(counted.next) {
		return
	}
	for n := 0; broken && n < all; n++ {
		if v := i.nth(n); v != nil && v.seen != page {
			return
		}
	}
	again := counted.next < counted.now
	for n := range all {
		v := i.nth(n)
		switch {
		case v == nil:
			continue
		case again:
			v.base += v.now
			v.now = 0
		}
		if v.seen == page {
			v.now = v.next
		}
	}
	before := i.native.size() + i.baseNative.size()
	if again {
		i.baseNative = addNative(i.baseNative, i.native)
	}
	i.native, i.nextNative = i.nextNative, nil
	i.hold(i.native.size() + i.baseNative.size() - before)
}

func (i *item) commitSummary() {
	page := i.process.pages
	before := len(i.bounds)
	i.bounds = slices.DeleteFunc(i.bounds, func(v *value) bool { return v.seen+1 < page })
	i.process.bounds -= before - len(i.bounds)
	i.hold(valueSize * (len(i.bounds) - before))
	for _, v := range i.bounds {
		v.now = v.next
	}
	for _, v := range []*value{i.sum, i.count} {
		if v != nil {
			v.now = v.next
		}
	}
}

// shown reports whether the last page of the process had it.
func (i *item) shown() bool { return i.seen == i.process.pages && !i.process.silent }

// buckets returns what a histogram has counted in all.
func (i *item) buckets() *buckets {
	b := &buckets{count: i.counted().total(), sum: i.sum.total(), native: addNative(i.baseNative, i.native)}
	for _, v := range i.bounds {
		if !math.IsInf(v.bound, 1) {
			b.bounds = append(b.bounds, v.bound)
			b.counts = append(b.counts, v.total())
		}
	}
	return b
}

// forget takes an item out of its cell. What its process shows of it now does not stay
// there: it goes on, as something else.
func (i *item) forget() {
	for n := range len(i.bounds) + 2 {
		if v := i.nth(n); v != nil {
			v.now = 0
		}
	}
	if i.value != nil {
		i.value.now = 0
	}
	i.native = nil
	i.leave()
}

// leave takes an item out of its cell, where what it has counted stays.
func (i *item) leave() {
	c := i.cell
	switch {
	case i.kind == counter && c.policy != Last:
		c.past += i.value.total()
	case i.kind == histogram && c.policy != Last && i.buckets().count > 0:
		c.gone = c.gone.joined(i.buckets())
	}
	i.cell = nil
	c.items = slices.DeleteFunc(c.items, func(other *item) bool { return other == i })
	f := c.family
	if f.dropped {
		return
	}
	c.weigh()
	if i.kind == f.kind {
		f.ours--
	} else {
		f.others--
	}
	if f.ours == 0 && f.others > 0 {
		f.drop() // what the others have it for is what it is from now on
		return
	}
	if len(c.items) == 0 && c.past == 0 && c.gone == nil {
		f.remove(c)
	}
	if len(f.cells) == 0 {
		f.end()
	}
}
