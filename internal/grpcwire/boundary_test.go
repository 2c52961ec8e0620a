package grpcwire

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Wherever the pieces end, Boundary knows where messages do.
func TestBoundary(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 17))
	var stream []byte
	begun := []int{0} // by the number of bytes that have come
	for _, size := range []int{0, 1, 0, 0, 300, 5, 70_000, 4, 1} {
		stream = AppendPrefix(stream, Prefix{Length: uint32(size)})
		stream = append(stream, bytes.Repeat([]byte{0xff}, size)...)
		for n := 1; n < PrefixLen+size; n++ {
			begun = append(begun, n)
		}
		begun = append(begun, 0)
	}
	for range 200 {
		var b Boundary
		for at := 0; at < len(stream); {
			if got := b.Begun(); got != begun[at] {
				t.Fatalf("behind %d bytes: %d have begun, want %d", at, got, begun[at])
			}
			next := min(at+1+random.IntN(1+random.IntN(1<<random.IntN(17))), len(stream))
			rest := at
			for rest < next && begun[rest] > 0 {
				rest++
			}
			if got := b.Rest(stream[at:next]); got != rest-at {
				t.Fatalf("from %d to %d: %d bytes belong to the message, want %d", at, next, got, rest-at)
			}
			b.Take(stream[at:next])
			at = next
		}
		testkit.Want(t, b.Begun() == 0, "the last message is not whole")
	}
}

// Bytes that are no messages count as whole, and cost no look any more.
func TestBoundaryOfOtherBytes(t *testing.T) {
	for _, text := range []string{"<html>", "\x00\x00\x00\x00\x01x<html>", "\x02", "\x80\x00\x00\x00\x10grpc-s"} {
		for _, step := range []int{1, 3, 100} {
			var b Boundary
			for rest := []byte(text); len(rest) > 0; rest = rest[min(step, len(rest)):] {
				b.Take(rest[:min(step, len(rest))])
			}
			testkit.Want(t, b.Begun() == 0 && b.Rest([]byte("more")) == 0, "%q by %d bytes: %d have begun", text, step, b.Begun())
		}
	}
}

func BenchmarkBoundary(b *testing.B) {
	message := append([]byte{0, 0, 0, 0, 1}, 'x')
	var at Boundary
	for b.Loop() {
		at.Take(message)
	}
}
