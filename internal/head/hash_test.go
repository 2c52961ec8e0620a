package head

import (
	"fmt"
	"math/bits"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Instances of different versions send a key to the same endpoint, so a hash
// never changes; and the hashes of keys that are nearly the same are far apart.
func TestHashes(t *testing.T) {
	for text, want := range map[string]uint64{
		"": 0xf52a15e9a9b5e89b, "user-1": 0xc499b5f8a721df58, "user-2": 0x4fb38f414590a87b,
	} {
		testkit.Equal(t, hashOf([]byte(text)), want, "%q", text)
	}
	last, differ := hashOf([]byte("user-0")), 0
	const pairs = 1000
	for i := 1; i <= pairs; i++ {
		h := hashOf(fmt.Append(nil, "user-", i))
		differ += bits.OnesCount64(h>>56 ^ last>>56)
		last = h
	}
	mean := float64(differ) / pairs
	testkit.Want(t, mean >= 3.5 && mean <= 4.5, "of the 8 highest bits %v differ", mean)
}
