//go:build real || soak

package cabrank_test

import (
	"os"
	"testing"
)

// mostProgramBytes is what bin/cabrank may have: people copy it into their images.
// A change that needs more raises it, and says here what for.
//
// 16.5 MB: 15.3 MB when gRPC's trace pages and the templates of cobra were gone.
// 18.5 MB: 2.4 MB more for "cabrank lab load", of which the compiler of .proto files is
// 1.3 MB (decision 044).
// 19 MB: 0.3 MB more for TLS, the worker and the scenarios of the lab, 0.1 MB for
// "cabrank lab what-if".
// 19.3 MB: 0.3 MB more for sockets.
// 22 MB: 1.1 MB more for "cabrank lab run", with the name server, 0.5 MB for the proxies.
// Still 22 MB: 0.8 MB of it for Redis (rueidis, decision 049), which would be 10 MB more
// where something calls methods by name.
// 23 MB: 1.6 MB more for sockets, 0.5 MB less without HTTP/2 of net/http. Tokens 0.27 MB
// (go-jose), the client with its commands 0.3, methods and their schemas 0.2, callees 0.14,
// pushing 0.11, the second protocol 0.07; workers' metrics and the log of calls 0.3.
// 20 MB, and 8 MB after gzip: packages for four platforms carry it. 2.5 MB less: DNS 0.8
// (decision 066), .proto files 0.8 (067), rules of the kernel 0.3 (068), sorts 0.2, no
// inlining where no call goes through 0.5.
const mostProgramBytes = 20_000_000

// One dependency that calls methods by name, as templates do, and the linker keeps
// the methods of every type: 3 MB that nobody uses.
func TestProgramIsLean(t *testing.T) {
	info, err := os.Stat("bin/cabrank")
	if err != nil {
		t.Fatalf("%v: run 'make build'", err)
	}
	t.Logf("bin/cabrank has %d bytes", info.Size())
	if info.Size() > mostProgramBytes {
		t.Errorf("bin/cabrank has %d bytes, at most %d are allowed; what calls methods by name has the mark "+
			"<ReflectMethod> in what 'make build LDFLAGS=-dumpdep' prints", info.Size(), mostProgramBytes)
	}
}
