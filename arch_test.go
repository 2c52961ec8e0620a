// Package cabrank_test polices the tree: which package may import which, what
// must be documented, and what must not appear. It reads the source and starts
// nothing. When it fails it says which rule was broken and where the rule is
// written; the tables below are the place to change a rule, with a reason.
package cabrank_test

import (
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

const module = "github.com/cabrank/cabrank"

// anything stands in a layer for "no limit of this kind".
var anything = []string{"..."}

// layer is what one package may import outside its tests, and how far it must
// stay from the world.
type layer struct {
	inside     []string // packages of this module, without the module path
	outside    []string // modules of others; a name covers what is below it
	notStd     []string // parts of the standard library it must not know
	pure       bool     // starts no goroutine and reads no clock: `now` is handed in
	documented bool     // every exported name has a comment
	onlyTests  bool     // imported by tests alone
}

// layers lists every package. A name that ends in /... covers what is below
// it. Imports go one way, from the top of this list to the bottom:
//
//	cmd/cabrank → service → admin → relay → shard → h2
//	                                      → head → callers → stats → health, rank
//	                                      → door, grpcwire, list
//
// A package that is not on the list fails the test: whoever adds one decides
// here what it may know. An entry may wait for its package.
var layers = map[string]layer{
	// The root has tests only.
	".": {},
	// The wiring knows everybody, so that nobody else has to.
	"internal/service": {inside: anything, outside: []string{"golang.org/x/term", "google.golang.org/grpc"}, documented: true},
	// Its commands read the line, ask and print.
	"cmd/cabrank": {
		inside: []string{
			"callee", "client", "internal/admin", "internal/broker", "internal/cli", "internal/config", "internal/demo", "internal/doctor",
			"internal/handover", "internal/page", "internal/process", "internal/service",
		},
		outside: anything,
	},

	// A module of its own, with libraries of its own: it knows the program as a file.
	"packaging": {outside: anything},

	// The data path. No library of others is on it except the Huffman coding
	// of hpack: frames and header blocks are our own, and allocation free.
	"internal/h2": {
		outside: []string{"golang.org/x/net/http2/hpack"},
		notStd:  []string{"net", "os/exec", "syscall"},
		pure:    true, documented: true,
	},
	"internal/grpcwire": {
		outside: []string{"google.golang.org/protobuf/encoding/protowire"},
		notStd:  []string{"net", "os"},
		pure:    true, documented: true,
	},
	"internal/rank": {notStd: []string{"net", "os", "syscall"}, pure: true, documented: true},
	"internal/ranksim": {
		inside: []string{"internal/rank"},
		notStd: []string{"net", "os", "syscall"},
		pure:   true, documented: true,
	},
	"internal/shard": {
		inside:     []string{"internal/h2"},
		outside:    []string{"golang.org/x/sys"},
		notStd:     []string{"net/http", "os/exec"},
		documented: true,
	},
	// It speaks no protocol: who serves a connection is for others to say.
	"internal/door": {
		outside:    []string{"golang.org/x/sys"},
		notStd:     []string{"net/http", "os/exec", "crypto/tls"},
		documented: true,
	},
	// What is known of methods. It is handed times and codes, and knows no call.
	"internal/stats": {inside: []string{"internal/grpcwire", "internal/health", "internal/rank"}, notStd: []string{"os", "syscall"}, pure: true, documented: true},
	// Who a caller is, and what it may hold. It knows no call, no stream and no shard.
	"internal/callers": {
		inside: []string{"internal/door", "internal/grpcwire", "internal/h2", "internal/list", "internal/rank", "internal/stats"},
		notStd: []string{"os", "syscall"}, pure: true, documented: true,
	},
	// The head of a request, read once. It is handed a block, and knows no connection.
	"internal/head": {
		inside: []string{"internal/callers", "internal/door", "internal/grpcwire", "internal/h2", "internal/rank", "internal/stats"},
		notStd: []string{"os", "syscall"}, pure: true, documented: true,
	},
	"internal/list": {notStd: []string{"net", "os", "syscall"}, pure: true, documented: true},
	"internal/relay": {
		inside:     []string{"internal/callers", "internal/head", "internal/list", "internal/door", "internal/h2", "internal/shard", "internal/grpcwire", "internal/health", "internal/rank", "internal/stats", "internal/trace"},
		notStd:     []string{"os/exec"},
		documented: true,
	},

	// The live page of a command: it knows the process that it shows by its control socket.
	"internal/page": {},
	// It knows what the control socket says, and nothing else.
	"internal/doctor": {inside: []string{"internal/admin", "internal/scale"}, notStd: []string{"net", "os"}},

	// Callers that speak another protocol than gRPC. It knows no call and no queue.
	"internal/web": {
		inside:     []string{"internal/door", "internal/h2"},
		outside:    []string{"golang.org/x/net/http/httpguts"},
		notStd:     []string{"os", "syscall"},
		documented: true,
	},

	// Requests and answers of gRPC-Web and Connect. They know no call but what they are handed.
	"internal/web/webcall": {inside: []string{"internal/grpcwire", "internal/h2"}, notStd: []string{"os", "syscall"}, documented: true},
	"internal/web/grpcweb": {
		inside:     []string{"internal/grpcwire", "internal/h2", "internal/web/webcall"},
		notStd:     []string{"os", "syscall"},
		documented: true,
	},
	"internal/web/connect": {
		inside:     []string{"internal/grpcwire", "internal/h2", "internal/web/webcall"},
		outside:    []string{"google.golang.org/genproto", "google.golang.org/protobuf"},
		notStd:     []string{"os", "syscall"},
		documented: true,
	},
	// Their calls, made in the relay: it joins the two, and the schema.
	"internal/webdoors": {
		inside:     []string{"internal/door", "internal/grpcwire", "internal/h2", "internal/relay", "internal/schema", "internal/web/..."},
		notStd:     []string{"os", "syscall"},
		documented: true,
	},

	// Callers over WebSocket. They know of functions and channels what a broker says.
	"internal/socket": {
		inside:     []string{"internal/auth", "internal/broker", "internal/door", "internal/watch"},
		outside:    []string{"github.com/go-json-experiment/json/jsontext", "github.com/gorilla/websocket", "google.golang.org/protobuf/encoding/protowire"},
		notStd:     []string{"os/exec", "syscall"},
		documented: true,
	},
	// Who comes, and what it may do. It serves nobody, and fetches keys.
	"internal/auth": {
		inside:     []string{"internal/broker"},
		outside:    []string{"github.com/go-jose/go-jose/v4"},
		notStd:     []string{"os", "syscall"},
		documented: true,
	},
	// What messages of gRPC methods look like. It opens no socket: conversations with
	// servers are over streams that it is given.
	"internal/schema": {
		outside: []string{"google.golang.org/grpc", "google.golang.org/protobuf"},
		notStd:  []string{"net", "os/exec", "text/template", "html/template"}, documented: true,
	},
	// Their gRPC methods, called by sockets: it joins the relay and the schema.
	"internal/methods": {
		inside:     []string{"internal/broker", "internal/callers", "internal/door", "internal/grpcwire", "internal/relay", "internal/schema"},
		outside:    []string{"google.golang.org/grpc", "google.golang.org/protobuf"},
		notStd:     []string{"os", "syscall", "os/exec"},
		documented: true,
	},
	// What is silent, and wakes: it knows no protocol.
	"internal/watch":        {notStd: []string{"net/http", "os/exec"}, documented: true},
	"internal/broker":       {notStd: []string{"net", "os", "syscall"}, documented: true},
	"internal/broker/redis": {inside: []string{"internal/broker", "internal/redislink"}, outside: []string{"github.com/redis/rueidis"}, notStd: []string{"net", "os", "syscall"}, documented: true},
	// Programs of others import it: what it exports is of the standard library or its own.
	"callee": {inside: []string{"internal/broker", "internal/redislink"}, outside: []string{"github.com/redis/rueidis"}, notStd: []string{"net", "os", "syscall"}, documented: true},
	// How a Redis is reached, and what juggler.0 has there.
	"internal/redislink": {outside: []string{"github.com/redis/rueidis", "golang.org/x/sys"}, notStd: []string{"net/http", "os/exec"}, documented: true},
	// What an application says to sockets.
	"internal/push": {
		inside:     []string{"internal/door", "internal/push/pushpb", "internal/socket"},
		outside:    []string{"google.golang.org/grpc"},
		notStd:     []string{"os", "os/exec", "syscall"},
		documented: true,
	},
	"internal/push/...":          {outside: anything},
	"internal/broker/brokertest": {inside: []string{"internal/broker", "internal/socket", "internal/testkit"}, documented: true, onlyTests: true},

	// Lines about finished calls.
	"internal/accesslog": {inside: []string{"internal/grpcwire", "internal/relay", "internal/sink"}, notStd: []string{"net", "os/exec"}, documented: true},
	// What becomes of calls, as spans for a collector. It knows no call but what it is told.
	"internal/trace": {
		inside:     []string{"internal/grpcwire"},
		outside:    []string{"go.opentelemetry.io/proto/otlp", "golang.org/x/net/http/httpguts", "google.golang.org/protobuf"},
		notStd:     []string{"os/exec", "syscall"},
		documented: true,
	},
	// Programs of others import it.
	"client": {outside: []string{"github.com/gorilla/websocket"}, notStd: []string{"os", "syscall"}, documented: true},

	// Where lines go that nobody may be reading.
	"internal/sink": {notStd: []string{"net", "os", "syscall"}, documented: true},

	// Around it. worker and rank do not know each other: service joins them.
	"internal/worker":   {inside: []string{"internal/health", "internal/health/check", "internal/cgroup", "internal/process", "internal/sink"}, outside: anything},
	"internal/process":  {inside: []string{"internal/cgroup"}, outside: []string{"golang.org/x/sys"}, documented: true},
	"internal/discover": {inside: []string{"internal/health", "internal/health/check"}, outside: anything},
	// The judge of endpoints, for relay, worker and discover, and who asks them how they are.
	"internal/health":       {notStd: []string{"net", "os", "syscall"}, pure: true, documented: true},
	"internal/health/check": {inside: []string{"internal/health", "internal/schema"}, outside: []string{"google.golang.org/grpc"}, notStd: []string{"os"}, documented: true},
	"internal/config": {
		// Its groups of keys are the options of the parts that go by them.
		inside:  []string{"internal/callers", "internal/certs", "internal/cgroup", "internal/grpcwire", "internal/rank", "internal/relay", "internal/scrape", "internal/socket", "internal/spelling", "internal/stats", "internal/strictyaml", "internal/trace", "internal/worker"},
		outside: anything, notStd: []string{"net/http", "os/exec"},
	},
	// What keys mean is for others.
	"internal/strictyaml": {
		inside:  []string{"internal/spelling"},
		outside: []string{"go.yaml.in/yaml/v3"},
		notStd:  []string{"net", "os", "syscall"}, pure: true, documented: true,
	},
	"internal/spelling": {notStd: []string{"net", "os", "syscall"}, pure: true, documented: true},
	// How many workers are wanted; that they come and go is for others.
	"internal/scale": {notStd: []string{"net", "os", "syscall"}, pure: true, documented: true},
	"internal/scalesim": {
		inside: []string{"internal/scale", "internal/ranksim"},
		notStd: []string{"net", "os", "syscall"},
		pure:   true, documented: true,
	},
	// What it reads is handed in as a file system, so that tests own it.
	"internal/certs":    {notStd: []string{"net", "os/exec"}, documented: true},
	"internal/cgroup":   {notStd: []string{"net", "os", "syscall"}, pure: true, documented: true},
	"internal/handover": {outside: []string{"golang.org/x/sys"}, notStd: []string{"net/http"}, documented: true},
	"internal/admin":    {inside: []string{"internal/discover", "internal/rank", "internal/relay", "internal/scale", "internal/scrape", "internal/socket", "internal/stats", "internal/worker"}, outside: anything},
	// It knows of workers what their pages say.
	"internal/scrape": {
		outside:    []string{"github.com/prometheus/client_model", "google.golang.org/protobuf"},
		notStd:     []string{"os", "os/exec"},
		documented: true,
	},
	"internal/demo":     {inside: []string{"internal/demo/demopb"}, outside: anything},
	"internal/demo/...": {outside: anything},

	// The lab measures from outside: it starts cabrank as anybody does. Only its
	// simulations drive a rank (TestLabStaysOutside).
	"lab/internal/lab":    {inside: []string{"client", "lab/internal/..."}, outside: anything},
	"lab/cmd/cabrank-lab": {inside: []string{"examples/...", "internal/cli", "internal/process", "lab/internal/..."}, outside: anything},
	// What it is made of, from the bottom: time, frames, processes, a worker.
	"internal/testkit/alarm": {outside: []string{"golang.org/x/sys"}, notStd: []string{"net", "os/exec"}, documented: true},
	"lab/internal/rawh2": {
		inside:  []string{"lab/internal/traffic"},
		outside: []string{"golang.org/x/net/http2", "golang.org/x/sync/errgroup", "google.golang.org/grpc/codes"},
		notStd:  []string{"os/exec", "net/http"}, documented: true,
	},
	// What was measured, and what may be said of it: no file, no socket, no clock.
	"lab/internal/latency": {
		outside: []string{"github.com/HdrHistogram/hdrhistogram-go"},
		notStd:  []string{"net", "os", "syscall"},
		pure:    true, documented: true,
	},
	// Who makes calls by a plan knows no protocol; caller brings one.
	"lab/internal/traffic": {
		inside:  []string{"internal/testkit/alarm", "lab/internal/latency"},
		outside: []string{"github.com/HdrHistogram/hdrhistogram-go"},
		notStd:  []string{"net", "os", "syscall"}, documented: true,
	},
	"lab/internal/caller": {
		inside:  []string{"lab/internal/method", "lab/internal/traffic"},
		outside: []string{"connectrpc.com/connect", "google.golang.org/grpc", "google.golang.org/protobuf"},
		notStd:  []string{"os", "os/exec"}, documented: true,
	},
	// What was asked of a load. Whoever searches hands in what makes the calls.
	"lab/internal/goal": {
		inside: []string{"lab/internal/latency", "lab/internal/traffic"},
		notStd: []string{"net", "os", "syscall"}, documented: true,
	},
	"lab/internal/stats": {
		outside: []string{"gonum.org/v1/gonum/stat"},
		notStd:  []string{"net", "os", "syscall"},
		pure:    true, documented: true,
	},
	// What listens: ports that are free, names that change.
	"internal/testkit/certificate": {notStd: []string{"os"}, documented: true},
	"internal/testkit/ports":       {notStd: []string{"os"}, documented: true},
	"internal/testkit/nameserver":  {outside: []string{"github.com/miekg/dns"}, notStd: []string{"os"}, documented: true},
	// Programs of others, and what they read; they are started by others.
	"lab/internal/proxies": {documented: true},
	// The processes of an arm. It starts cabrank, and asks whether workers answer as cabrank does.
	"lab/internal/rig": {
		inside: []string{
			"internal/cgroup", "internal/health", "internal/health/check", "internal/testkit/certificate", "internal/testkit/nameserver", "internal/testkit/ports",
			"lab/internal/proxies", "lab/internal/result", "lab/internal/scenario", "lab/internal/testbed",
		},
		outside:    []string{"golang.org/x/sync/errgroup", "golang.org/x/sys"},
		documented: true,
	},
	// Pinned processes, control groups and networks of their own, the machine: nothing of
	// what is measured.
	"lab/internal/testbed": {
		inside:     []string{"internal/cgroup", "internal/process"},
		outside:    []string{"github.com/google/nftables", "github.com/prometheus/procfs", "github.com/vishvananda/netlink", "golang.org/x/sys"},
		documented: true,
	},
	// What a run of a scenario has measured, and its files.
	"lab/internal/result": {
		inside:  []string{"lab/internal/latency", "lab/internal/traffic"},
		outside: []string{"google.golang.org/grpc/codes"},
		notStd:  []string{"net", "os/exec"}, documented: true,
	},
	"lab/test/made": {
		inside:     []string{"lab/internal/latency", "lab/internal/result", "lab/internal/traffic"},
		documented: true, onlyTests: true,
	},
	// What was found, for people, and charts as SVG for docs/img.
	"lab/internal/report": {inside: []string{"lab/internal/goal", "lab/internal/latency", "lab/internal/result", "lab/internal/stats", "lab/internal/traffic"}, outside: []string{"google.golang.org/grpc/codes"}, notStd: []string{"net", "os", "os/exec"}, documented: true},
	// Command lines: what is started as a process of its own.
	"lab/cmd/...": {inside: []string{"lab/internal/..."}, outside: anything},
	// A file becomes a plan; nothing is started.
	"lab/internal/scenario": {
		inside: []string{"lab/internal/caller", "lab/internal/rawh2", "lab/internal/result", "lab/internal/traffic", "lab/internal/work", "internal/spelling", "internal/strictyaml"},
		notStd: []string{"net", "os", "os/exec"}, pure: true, documented: true,
	},
	// The worker that comes with the lab.
	"lab/internal/work": {
		inside:  []string{"internal/testkit/alarm"},
		outside: []string{"google.golang.org/grpc", "google.golang.org/protobuf", "golang.org/x/sys"},
		notStd:  []string{"os/exec"}, documented: true,
	},
	// A generator as a process of its own: it knows no scenario.
	"lab/internal/agent": {
		inside:  []string{"lab/internal/caller", "lab/internal/method", "lab/internal/rawh2", "lab/internal/testbed", "lab/internal/traffic", "lab/internal/work"},
		outside: []string{"google.golang.org/grpc", "google.golang.org/protobuf"}, documented: true,
	},
	// Runs a scenario: it joins the others, and judges nothing.
	"lab/internal/trial": {
		inside: []string{
			"internal/rank", "internal/ranksim", "lab/internal/agent", "lab/internal/caller", "lab/internal/latency", "lab/internal/method",
			"lab/internal/result", "lab/internal/rig", "lab/internal/scenario", "lab/internal/stats", "lab/internal/testbed",
			"lab/internal/traffic", "lab/internal/work",
		},
		outside: []string{"golang.org/x/sync/errgroup", "google.golang.org/grpc", "google.golang.org/protobuf"}, documented: true,
	},
	// What is called, and with which bytes; calls are made by others.
	"lab/internal/method": {
		inside:  []string{"internal/schema", "internal/spelling"},
		outside: []string{"google.golang.org/grpc", "google.golang.org/protobuf", "github.com/bufbuild/protocompile", "github.com/go-json-experiment/json"},
		notStd:  []string{"os/exec", "text/template", "html/template"}, documented: true,
	},

	// What both programs say alike on the command line.
	"internal/cli": {
		inside:  []string{"client"},
		outside: []string{"github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/term"},
		notStd:  []string{"os/exec"}, documented: true,
	},

	"internal/testkit":        {inside: []string{"internal/testkit/certificate", "internal/testkit/ports"}, outside: anything, onlyTests: true},
	"internal/testkit/script": {outside: []string{"github.com/rogpeppe/go-internal"}, onlyTests: true},
	// Redis, started for tests, and one that says what a test wants.
	"internal/testkit/fakeredis": {documented: true, onlyTests: true},
	"internal/testkit/redisd":    {inside: []string{"internal/testkit/ports", "internal/testkit"}, outside: []string{"github.com/gomodule/redigo"}, documented: true, onlyTests: true},
	// A collector of spans, with the types of the real one, which are not in the program.
	"internal/testkit/collector": {inside: []string{"internal/testkit"}, outside: []string{"go.opentelemetry.io/collector/pdata"}, documented: true, onlyTests: true},
	// What goes over a WebSocket, as text, for whatever server.
	"internal/testkit/exchange": {outside: []string{"github.com/gorilla/websocket"}, documented: true, onlyTests: true},
	// A server on the engine; apart, since the engine's tests import testkit.
	"internal/testkit/plain": {
		inside:    []string{"internal/h2", "internal/shard"},
		onlyTests: true,
	},

	// Beside it: they see the product as anybody does, from outside.
	"test/real/...":     {},
	"lab/test/real/...": {},
	"test/real/oneslot": {
		inside:  []string{"internal/ranksim", "internal/testkit/alarm"},
		outside: []string{"golang.org/x/sys", "google.golang.org/grpc", "google.golang.org/protobuf"},
		notStd:  []string{"os/exec"}, documented: true, onlyTests: true,
	},
	"test/real/harness": {
		inside:  []string{"examples/...", "internal/demo/demopb", "internal/testkit", "test/real/oneslot"},
		outside: anything, documented: true, onlyTests: true,
	},
	// It runs tests, as a program of its own.
	"test/lane": {notStd: []string{"net"}},
	// It runs tests and the lab, as programs of their own.
	"test/ablation": {notStd: []string{"net"}},
	// It reads sources.
	"test/macos": {notStd: []string{"net"}},
	// The programs that ours has to work with, which are no longer to be had: it shares
	// nothing with ours.
	"test/oldjuggler": {
		outside:    []string{"github.com/gomodule/redigo", "github.com/gorilla/websocket"},
		documented: true, onlyTests: true,
	},
	"examples/...": {inside: []string{"examples/..."}, outside: anything},
}

// mutable lists the package-level variables that are neither errors nor
// interface assertions, as "folder.name", each with the reason why it stays.
// All of them are written once, by the compiler or the linker.
var mutable = map[string]string{
	"cmd/cabrank.version":         "set by the linker (Makefile, build)",
	"lab/cmd/cabrank-lab.version": "set by the linker (Makefile, lab)",
	"lab/cmd/cabrank-lab.stamps":  "a compiled expression",
	"cmd/cabrank.commit":          "set by the linker (Makefile, build)",
	"cmd/cabrank.buildDate":       "set by the linker (Makefile, build)",

	"examples/fibonacci.Files":       "embedded files; nothing writes to them",
	"examples/jobs.Files":            "embedded files; nothing writes to them",
	"internal/config.forms":          "compiled expressions",
	"internal/page.html":             "an embedded file; nothing writes to it",
	"internal/config.allKeys":        "the keys, which the tags of a struct say",
	"internal/config.kinds":          "the kinds of values, which tags name",
	"lab/internal/proxies.files":     "embedded files; nothing writes to them",
	"lab/internal/method.holeForm":   "a compiled expression",
	"lab/internal/method.position":   "a compiled expression",
	"lab/internal/report.pageText":   "embedded files; nothing writes to them",
	"lab/internal/scenario.files":    "embedded files; nothing writes to them",
	"lab/internal/scenario.oneWord":  "a compiled expression",
	"internal/h2.compressionTokens":  "a table of names",
	"internal/h2.errCodeNames":       "a table of names",
	"internal/h2.huffman":            "the code of RFC 7541, appendix B",
	"internal/h2.malformedTokens":    "a table of names",
	"internal/h2.octets":             "a table of bits, computed from a list of characters",
	"internal/h2.staticIndex":        "an index of the table below",
	"internal/h2.staticTable":        "the table of RFC 7541, appendix A",
	"internal/grpcwire.codeNames":    "a table of names",
	"internal/grpcwire.timeoutUnits": "a table of units",
	"packaging.npmLauncher":          "embedded files; nothing writes to them",
	"packaging.pythonPackage":        "embedded files; nothing writes to them",
	"packaging.comments":             "a compiled expression",
	"packaging.licenseNames":         "a compiled expression",
	"packaging.links":                "a compiled expression",
	"packaging.marks":                "a compiled expression",
	"packaging.parts":                "a compiled expression",
	"packaging.tables":               "a compiled expression",
	"packaging.ruby":                 "embedded files; nothing writes to them",
	"test/ablation.ablated":          "a compiled expression",
	"test/ablation.compileFault":     "a compiled expression",
	"test/lane.never":                "a compiled expression",
	"test/lane.onlyLong":             "a compiled expression",
	"test/lane.realTag":              "a compiled expression",
	"test/lane.tagged":               "a compiled expression",
	"test/lane.testFunc":             "a compiled expression",
	"test/real/harness.langStep":     "a compiled expression",
	"test/real/harness.takenLine":    "a compiled expression",

	"internal/testkit.authorityForm":  "a compiled expression",
	"internal/testkit.pathForm":       "a compiled expression",
	"internal/testkit.schemeForm":     "a compiled expression",
	"internal/testkit/exchange.files": "embedded by the compiler",

	"internal/stats.bounds": "a table of numbers",
}

// emptyNames are file and folder names that explain nothing: what is in such
// a file belongs to the noun that uses it.
var emptyNames = regexp.MustCompile(`^(.*_)?(utils?|common|types|managers?|helpers?|misc)$`)

// clockReads are the functions of package time that read or wait for the
// clock of the machine.
var clockReads = []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker"}

func TestLayers(t *testing.T) {
	for dir, p := range tree(t) {
		rule, ok := layerOf(dir)
		if !ok {
			t.Errorf("%s is not in the table layers of arch_test.go: say there what it may import", dir)
			continue
		}
		for _, f := range p.code() {
			for _, spec := range f.syntax.Imports {
				name, _ := strconv.Unquote(spec.Path.Value)
				if why := refuseImport(dir, rule, name); why != "" {
					t.Errorf("%s imports %s: %s (table layers of arch_test.go)", f.name, name, why)
				}
			}
		}
	}
}

// refuseImport says why a package in dir must not import name, or nothing.
func refuseImport(dir string, rule layer, name string) string {
	inside, ours := strings.CutPrefix(name, module+"/")
	switch first, _, _ := strings.Cut(name, "/"); {
	case ours:
		if target, _ := layerOf(inside); target.onlyTests && !rule.onlyTests {
			return "only tests may"
		}
		if !covers(rule.inside, inside) {
			return dir + " must not know it"
		}
	case strings.Contains(first, "."):
		if !covers(rule.outside, name) {
			return "this library is not allowed for " + dir
		}
	case covers(below(rule.notStd), name):
		return dir + " must stay away from this part of the standard library"
	}
	return ""
}

// The rules hold what they say: each row is one import that must be refused,
// or allowed.
func TestRefuseImport(t *testing.T) {
	for _, tc := range []struct {
		dir, name string
		refused   bool
	}{
		{"internal/h2", module + "/internal/grpcwire", true},
		{"internal/h2", "golang.org/x/net/http2/hpack", false},
		{"internal/h2", "golang.org/x/net/http2", true},
		{"internal/rank", "net/netip", true},
		{"internal/rank", "network", false},
		{"internal/shard", "golang.org/x/sys/unix", false},
		{"internal/relay", module + "/internal/worker", true},
		{"internal/door", module + "/internal/relay", true},
		{"internal/door", module + "/internal/h2", true},
		{"internal/door", "net/http", true},
		{"internal/web", module + "/internal/relay", true},
		{"lab/internal/lab", module + "/internal/relay", true},
		{"lab/internal/rawh2", module + "/internal/h2", true},
		{"lab/cmd/cabrank-lab", module + "/internal/relay", true},
		{"internal/worker", module + "/internal/rank", true},
		{"internal/socket", module + "/internal/relay", true},
		{"internal/broker", module + "/internal/socket", true},
		{"cmd/cabrank", module + "/internal/relay", true},
		{"internal/service", module + "/internal/relay", false},
		{"internal/service", module + "/internal/testkit", true},
		{"cmd/cabrank", module + "/internal/testkit", true},
		{"examples/go/worker", module + "/examples/go/workpb", false},
	} {
		rule, ok := layerOf(tc.dir)
		testkit.Want(t, ok, "%s has no entry", tc.dir)
		why := refuseImport(tc.dir, rule, tc.name)
		testkit.Want(t, (why != "") == tc.refused, "%s imports %s: refused %t (%q), want %t", tc.dir, tc.name, !tc.refused, why, tc.refused)
	}
}

// The lab is trusted because it knows no more of the relay than any other caller:
// none of its packages has the data path in it, by whatever way.
func TestLabStaysOutside(t *testing.T) {
	for dir := range tree(t) {
		if !strings.HasPrefix(dir, "lab/internal/") {
			continue
		}
		for _, inner := range []string{"internal/relay", "internal/shard", "internal/h2"} {
			way := wayTo(t, dir, inner)
			testkit.Want(t, way == nil, "%s has %s in it: it measures from outside", strings.Join(way, " → "), inner)
		}
	}
}

// wayTo returns the packages of this module by which one imports another outside
// its tests, both ends included, or nothing.
func wayTo(t *testing.T, from, to string) []string {
	t.Helper()
	ways := map[string][]string{from: {from}}
	for next := []string{from}; len(next) > 0; next = next[1:] {
		p := tree(t)[next[0]]
		if p == nil {
			continue
		}
		for _, f := range p.code() {
			for _, spec := range f.syntax.Imports {
				name, _ := strconv.Unquote(spec.Path.Value)
				inside, ours := strings.CutPrefix(name, module+"/")
				if _, known := ways[inside]; ours && !known {
					ways[inside] = append(slices.Clone(ways[next[0]]), inside)
					next = append(next, inside)
				}
			}
		}
	}
	return ways[to]
}

// That the search for ways finds some.
func TestWayTo(t *testing.T) {
	testkit.Equal(t, strings.Join(wayTo(t, "internal/admin", "internal/h2"), " "), "internal/admin internal/relay internal/h2",
		"from admin to h2")
	got := wayTo(t, "internal/rank", "internal/relay")
	testkit.Want(t, got == nil, "from rank to relay: %q", got)
}

// layerOf finds the entry for a folder: its own, or the nearest above it that
// ends in /... .
func layerOf(dir string) (layer, bool) {
	if rule, ok := layers[dir]; ok {
		return rule, true
	}
	for up := dir; up != "."; up = path.Dir(up) {
		if rule, ok := layers[up+"/..."]; ok {
			return rule, true
		}
	}
	return layer{}, false
}

// covers reports whether a list allows name: by itself, or by an entry that
// ends in /... or names what is above it in another module.
func covers(list []string, name string) bool {
	for _, entry := range list {
		above, wild := strings.CutSuffix(entry, "...")
		external := strings.Contains(strings.SplitN(entry, "/", 2)[0], ".")
		switch {
		case name == entry,
			wild && strings.HasPrefix(name+"/", above),
			external && strings.HasPrefix(name, entry+"/"):
			return true
		}
	}
	return false
}

// below adds to every name of a list what is below it.
func below(names []string) []string {
	var all []string
	for _, name := range names {
		all = append(all, name+"/...")
	}
	return all
}

// Time and goroutines come from the outside, so that tests own them.
func TestPurePackagesReadNoClock(t *testing.T) {
	for dir, p := range tree(t) {
		if rule, _ := layerOf(dir); !rule.pure {
			continue
		}
		for _, f := range p.code() {
			ast.Inspect(f.syntax, func(n ast.Node) bool {
				if what := impure(n); what != "" {
					t.Errorf("%s: %s: %s is pure, time and goroutines are handed in", p.at(n), what, dir)
				}
				return true
			})
		}
	}
}

// impure names what a node does that a pure package must not do, or nothing.
func impure(n ast.Node) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "starts a goroutine"
	case *ast.SelectorExpr:
		if pkg, ok := n.X.(*ast.Ident); ok && pkg.Name == "time" && slices.Contains(clockReads, n.Sel.Name) {
			return "uses time." + n.Sel.Name
		}
	}
	return ""
}

func TestPackagesAreExplained(t *testing.T) {
	for dir, p := range tree(t) {
		testkit.Want(t, !p.written() || slices.ContainsFunc(p.files, file.explainsPackage),
			"%s has no package comment: say what it is for and what it does not do", dir)
	}
}

func TestExportedNamesAreExplained(t *testing.T) {
	for dir, p := range tree(t) {
		if rule, _ := layerOf(dir); !rule.documented {
			continue
		}
		for _, f := range p.code() {
			for _, decl := range f.syntax.Decls {
				for _, name := range undocumented(decl) {
					t.Errorf("%s: %s has no comment (templates in CONTRIBUTING.md)", p.at(name), name.Name)
				}
			}
		}
	}
}

// undocumented returns the exported names that a declaration makes and does
// not explain. The comment of a group covers constants and variables in it,
// not types.
func undocumented(decl ast.Decl) []*ast.Ident {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if decl.Name.IsExported() && decl.Doc == nil && receiverIsExported(decl) {
			return []*ast.Ident{decl.Name}
		}
	case *ast.GenDecl:
		var missing []*ast.Ident
		for _, spec := range decl.Specs {
			missing = append(missing, undocumentedSpec(spec, decl)...)
		}
		return missing
	}
	return nil
}

func undocumentedSpec(spec ast.Spec, group *ast.GenDecl) []*ast.Ident {
	var missing []*ast.Ident
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			if name.IsExported() && spec.Doc == nil && spec.Comment == nil && group.Doc == nil {
				missing = append(missing, name)
			}
		}
	case *ast.TypeSpec:
		alone := !group.Lparen.IsValid() && group.Doc != nil
		if spec.Name.IsExported() && spec.Doc == nil && spec.Comment == nil && !alone {
			missing = append(missing, spec.Name)
		}
		missing = append(missing, undocumentedMethods(spec)...)
	}
	return missing
}

// undocumentedMethods covers interfaces: what implementers must guarantee is
// said method by method, unless there is only one.
func undocumentedMethods(spec *ast.TypeSpec) []*ast.Ident {
	iface, ok := spec.Type.(*ast.InterfaceType)
	if !ok || !spec.Name.IsExported() || len(iface.Methods.List) == 1 {
		return nil
	}
	var missing []*ast.Ident
	for _, method := range iface.Methods.List {
		if len(method.Names) > 0 && method.Doc == nil && method.Comment == nil {
			missing = append(missing, method.Names...)
		}
	}
	return missing
}

// receiverIsExported is true for functions and for methods of exported types:
// those of an unexported type do not show in the documentation.
func receiverIsExported(f *ast.FuncDecl) bool {
	if f.Recv == nil {
		return true
	}
	typ := f.Recv.List[0].Type
	for {
		switch t := typ.(type) {
		case *ast.StarExpr:
			typ = t.X
		case *ast.IndexExpr:
			typ = t.X
		case *ast.IndexListExpr:
			typ = t.X
		case *ast.Ident:
			return t.IsExported()
		default:
			return false
		}
	}
}

// Reading main must tell what runs: nothing happens on import, and no state
// is shared behind the back of a function's arguments.
func TestNoHiddenState(t *testing.T) {
	seen := map[string]bool{}
	for dir, p := range tree(t) {
		for _, f := range p.code() {
			for _, decl := range f.syntax.Decls {
				if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
					t.Errorf("%s: init function: wire it in internal/service", p.at(fn))
				}
				for _, name := range variables(decl) {
					key := dir + "." + name.Name
					if _, ok := mutable[key]; !ok {
						t.Errorf("%s: package-level variable %s: pass it, make it constant, or give the reason in the table mutable of arch_test.go", p.at(name), key)
					}
					seen[key] = true
				}
			}
		}
	}
	for key := range mutable {
		dir, _, _ := strings.Cut(key, ".")
		_, exists := tree(t)[dir]
		testkit.Want(t, !exists || seen[key], "%s is in the table mutable of arch_test.go but no longer in the code: remove the entry", key)
	}
}

// variables returns the package-level variables of a declaration except
// interface assertions and errors, which nobody assigns again (the linter
// reassign holds that).
func variables(decl ast.Decl) []*ast.Ident {
	group, ok := decl.(*ast.GenDecl)
	if !ok || group.Tok != token.VAR {
		return nil
	}
	var found []*ast.Ident
	for _, spec := range group.Specs {
		value, _ := spec.(*ast.ValueSpec)
		for i, name := range value.Names {
			if name.Name != "_" && (i >= len(value.Values) || !makesError(value.Values[i])) {
				found = append(found, name)
			}
		}
	}
	return found
}

// makesError knows errors by their form: errors.New, fmt.Errorf, or a value
// of a type that is named an error.
func makesError(value ast.Expr) bool {
	switch value := value.(type) {
	case *ast.CallExpr:
		name := types.ExprString(value.Fun)
		return name == "errors.New" || name == "fmt.Errorf" || name == "cli.Told"
	case *ast.UnaryExpr:
		return value.Op == token.AND && makesError(value.X)
	case *ast.CompositeLit:
		return strings.HasSuffix(types.ExprString(value.Type), "Error")
	}
	return false
}

func TestNamesExplain(t *testing.T) {
	for dir, p := range tree(t) {
		testkit.Want(t, !emptyNames.MatchString(path.Base(dir)), "%s: a package name that explains nothing", dir)
		for _, f := range p.files {
			stem := strings.TrimSuffix(strings.TrimSuffix(path.Base(f.name), ".go"), "_test")
			testkit.Want(t, !emptyNames.MatchString(stem), "%s: a file name that explains nothing: name it after its one noun", f.name)
		}
	}
}
