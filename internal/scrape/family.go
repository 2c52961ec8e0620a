package scrape

import (
	"math"
	"strconv"
)

// mostUnlike is for how many families of a process it is remembered that a conflict was
// counted, as long as there is room for their names.
const mostUnlike = 1000

// workerLabel names the worker of what is shown for each of them.
const workerLabel = "worker"

// family is all metrics of a name.
//
// Guarded by Store.mu, as all below it.
type family struct {
	store  *Store
	name   string
	kind   kind
	help   string
	maker  *Process
	held   int              // bytes, of Process.made
	cells  map[string]*cell // by their labels
	ours   int              // items of the family's own kind
	others int              // items of another one

	dropped bool // it is not in the store any more
}

// cell is one metric of the merged page.
type cell struct {
	family *family
	key    string
	labels []label
	policy Policy
	items  []*item // of the processes that are there
	past   float64 // what those have counted that were
	gone   *buckets
	unlike bool // a conflict of bounds was counted
	maker  *Process
	held   int // bytes, of Process.made
}

// familyOf returns the family of a sample, which is made if there is none, or none with
// a process that is there. The caller holds mu.
func (p *Process) familyOf(r role) *family {
	f := p.store.families[r.family]
	if f != nil && f.kind != r.kind && f.ours == 0 {
		f.drop()
		f = nil
	}
	if f == nil {
		f = &family{store: p.store, name: r.family, kind: r.kind, maker: p, cells: map[string]*cell{}}
		p.store.families[r.family] = f
	}
	if f.help == "" {
		f.help = r.help
	}
	f.weigh()
	p.compare(f, r)
	return f
}

// compare counts what two processes say differently of one family, once for each.
func (p *Process) compare(f *family, r role) {
	if p.unlike[f.name] {
		return
	}
	switch {
	case f.kind != r.kind:
		p.store.conflicts.Type++
	case r.help != "" && r.help != f.help:
		p.store.conflicts.Help++
	default:
		return
	}
	if held := unlikeSize + len(f.name); len(p.unlike) < mostUnlike && p.hasRoom(held) {
		p.unlike[f.name] = true
		p.hold(held)
	}
}

// drop takes a family out of the store. Processes that have something of it place it
// again with their next page.
func (f *family) drop() {
	f.dropped = true
	for _, c := range f.cells {
		f.remove(c)
		for _, i := range c.items {
			i.process.again = true
		}
	}
	f.end()
}

// remove takes a cell out.
func (f *family) remove(c *cell) {
	delete(f.cells, c.key)
	f.store.series--
	c.maker.make(&c.held, 0)
}

// end takes out a family that has no cell.
func (f *family) end() {
	delete(f.store.families, f.name)
	f.maker.make(&f.held, 0)
}

// isNumber reports whether a metric of the kind is one number.
func (k kind) isNumber() bool { return k != histogram && k != summary }

// place returns where a sample goes; nowhere if it cannot be shown. The caller holds mu.
func (p *Process) place(r role, labels []label) point {
	bound := ""
	switch r.part {
	case partNone:
		return point{}
	case partBucket:
		labels, bound = without(labels, "le")
	case partQuantile:
		labels, bound = without(labels, "quantile")
	case partValue, partSum, partCount:
	}
	f := p.familyOf(r)
	if f.kind != r.kind && (!f.kind.isNumber() || !r.kind.isNumber()) {
		return point{} // a name has one shape on a page
	}
	i := p.itemOf(f, r.kind, labels)
	if i == nil {
		return point{}
	}
	if r.part != partBucket && r.part != partQuantile {
		return point{i, i.part(r.part)}
	}
	at, err := strconv.ParseFloat(bound, 64)
	if err != nil || math.IsNaN(at) {
		p.store.conflicts.Labels++
		return point{}
	}
	if v := i.bound(at); v != nil {
		return point{i, v}
	}
	return point{}
}

// itemOf returns what the process has of a cell; nil if there are too many.
func (p *Process) itemOf(f *family, k kind, labels []label) *item {
	policy := policyOf(p.store.options.Rules, f.name, k)
	switch {
	case p.store.options.PerWorker || k != f.kind:
		policy = Each
	case has(labels, "pid") && policy != Each:
		policy = Last // of a program of several processes, which has told them apart
	}
	if policy == Each {
		labels = with(labels, workerLabel, p.worker)
	}
	name := key(labels)
	c := f.cells[name]
	if c == nil {
		if p.store.series >= mostSeries {
			p.store.conflicts.Series++
			p.leftOut++
			return nil
		}
		c = &cell{family: f, maker: p, key: name, labels: labels, policy: policy}
		f.cells[name] = c
		p.store.series++
		c.weigh()
	}
	return c.itemOf(p, k)
}

func (c *cell) itemOf(p *Process, k kind) *item {
	for _, i := range c.items {
		if i.process == p {
			return i
		}
	}
	i := &item{process: p, cell: c, kind: k}
	c.items = append(c.items, i)
	p.items = append(p.items, i)
	i.hold(itemSize)
	if k == c.family.kind {
		c.family.ours++
	} else {
		c.family.others++
	}
	return i
}
