package scrape

import (
	"maps"
	"math"
	"slices"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
)

const (
	// mostNative is how many buckets a sum has before it gets coarser ones.
	mostNative = 2048
	// mostBucket is beyond the buckets of all numbers, with the finest schema.
	mostBucket = 1100 << 8
)

// native is a native histogram with exponential buckets. Bucket i has the values in
// (base^(i-1), base^i], where base is 2^(2^-schema), and in the same way those below
// zero; the zero bucket has those up to zeroWidth away from zero.
//
// Source: prometheus.io/docs/specs/native_histograms.
type native struct {
	schema    int32 // -4 to 8
	zeroWidth float64
	zero      float64
	above     map[int32]float64 // counts by number of the bucket
	below     map[int32]float64
}

// nativeBuckets returns how many buckets the native part has.
func nativeBuckets(h *dto.Histogram) int {
	return len(h.GetPositiveDelta()) + len(h.GetPositiveCount()) + len(h.GetNegativeDelta()) + len(h.GetNegativeCount())
}

// nativeOf returns the native part of a histogram, nil if it has none that is valid.
func nativeOf(h *dto.Histogram) *native {
	if h == nil || h.Schema == nil || h.GetSchema() < -4 || h.GetSchema() > 8 || !(h.GetZeroThreshold() >= 0) ||
		len(h.GetPositiveSpan())+len(h.GetNegativeSpan()) == 0 && h.ZeroThreshold == nil {
		return nil
	}
	n := &native{schema: h.GetSchema(), zeroWidth: h.GetZeroThreshold(), zero: float64(h.GetZeroCount())}
	if h.ZeroCountFloat != nil {
		n.zero = h.GetZeroCountFloat()
	}
	var ok, also bool
	n.above, ok = sparse(h.GetPositiveSpan(), countsOf(h.GetPositiveDelta(), h.GetPositiveCount()))
	n.below, also = sparse(h.GetNegativeSpan(), countsOf(h.GetNegativeDelta(), h.GetNegativeCount()))
	if !ok || !also {
		return nil
	}
	return n
}

// countsOf returns the counts of buckets, which are written as differences from one to
// the next if they are whole.
func countsOf(deltas []int64, counts []float64) []float64 {
	if len(deltas) == 0 {
		return counts
	}
	counts = make([]float64, len(deltas))
	now := int64(0)
	for i, d := range deltas {
		now += d
		counts[i] = float64(now)
	}
	return counts
}

// sparse gives counts the numbers of their buckets; false if there are more or fewer
// than the spans have, or one is below zero.
func sparse(spans []*dto.BucketSpan, counts []float64) (map[int32]float64, bool) {
	all := make(map[int32]float64, len(counts))
	at := int64(0)
	for _, span := range spans {
		at += int64(span.GetOffset())
		for range span.GetLength() {
			if len(counts) == 0 || !(counts[0] >= 0) || at > mostBucket || at < -mostBucket {
				return nil, false
			}
			if counts[0] > 0 {
				all[int32(at)] += counts[0]
			}
			counts = counts[1:]
			at++
		}
	}
	return all, len(counts) == 0
}

// addNative adds histograms, of which each may be nil, as Prometheus does: with the
// coarser buckets and the wider zero bucket of the two. Neither is changed.
func addNative(a, b *native) *native {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	schema := min(a.schema, b.schema)
	sum, other := a.coarser(schema), b.coarser(schema)
	for width := max(a.zeroWidth, b.zeroWidth); sum.zeroWidth != width || other.zeroWidth != width; {
		width = max(sum.widen(width), other.widen(width))
	}
	sum.zero += other.zero
	for at, n := range other.above {
		sum.above[at] += n
	}
	for at, n := range other.below {
		sum.below[at] += n
	}
	for sum.schema > -4 && len(sum.above)+len(sum.below) > mostNative {
		sum = sum.coarser(sum.schema - 1)
	}
	return sum
}

// coarser returns a copy with the wider buckets of a lower schema.
func (n *native) coarser(schema int32) *native {
	shift := n.schema - schema
	merge := func(fine map[int32]float64) map[int32]float64 {
		all := make(map[int32]float64, len(fine))
		for at, count := range fine {
			all[(at-1)>>shift+1] += count
		}
		return all
	}
	return &native{schema: schema, zeroWidth: n.zeroWidth, zero: n.zero, above: merge(n.above), below: merge(n.below)}
}

// widen makes the zero bucket at least so wide, and takes the buckets in that fall into
// it. It ends where a bucket does, and returns how wide it is.
func (n *native) widen(width float64) float64 {
	n.zeroWidth = max(n.zeroWidth, width)
	for _, side := range []map[int32]float64{n.above, n.below} {
		for at, count := range side {
			if n.bound(at-1) < n.zeroWidth {
				n.zero += count
				n.zeroWidth = max(n.zeroWidth, n.bound(at))
				delete(side, at)
			}
		}
	}
	return n.zeroWidth
}

// bound returns the upper bound of a bucket. The last one has all that is finite.
func (n *native) bound(at int32) float64 {
	return min(math.Exp2(float64(at)*math.Exp2(-float64(n.schema))), math.MaxFloat64)
}

// show writes a native histogram next to the classic buckets.
func (n *native) show(out *dto.Histogram, count float64) {
	if n == nil {
		return
	}
	out.Schema, out.ZeroThreshold, out.ZeroCountFloat = &n.schema, &n.zeroWidth, &n.zero
	out.SampleCountFloat = new(count)
	out.PositiveSpan, out.PositiveCount = spansOf(n.above)
	out.NegativeSpan, out.NegativeCount = spansOf(n.below)
	if len(out.GetPositiveSpan())+len(out.GetNegativeSpan()) == 0 {
		out.PositiveSpan = []*dto.BucketSpan{{Offset: proto.Int32(0), Length: proto.Uint32(0)}} // the mark of a native one
	}
}

// spansOf is the opposite of sparse.
func spansOf(all map[int32]float64) (spans []*dto.BucketSpan, counts []float64) {
	next := int32(0)
	for _, at := range slices.Sorted(maps.Keys(all)) {
		if len(spans) == 0 || at != next {
			spans = append(spans, &dto.BucketSpan{Offset: new(at - next), Length: proto.Uint32(0)})
		}
		last := spans[len(spans)-1]
		last.Length = new(last.GetLength() + 1)
		counts = append(counts, all[at])
		next = at + 1
	}
	return spans, counts
}
