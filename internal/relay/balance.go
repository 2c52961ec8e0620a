package relay

// hashOf returns the hash by which the policy ring_hash places a call. It is the same in
// every process, so that several instances send a key to the same endpoint. It is
// never 0: that is the hash of a call without a key.
//
// Source: FNV-1a (draft-eastlake-fnv), then the mixing of SplitMix64: the high bits of
// FNV-1a hardly differ for short texts that differ in the last octet only.
func hashOf(text []byte) uint64 {
	const (
		offset = 0xcbf29ce484222325
		prime  = 0x100000001b3
	)
	h := uint64(offset)
	for _, c := range text {
		h = (h ^ uint64(c)) * prime
	}
	h ^= h >> 30
	h *= 0xbf58476d1ce4e5b9
	h ^= h >> 27
	h *= 0x94d049bb133111eb
	h ^= h >> 31
	return max(h, 1)
}
