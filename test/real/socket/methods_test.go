//go:build real || soak

package socket_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

const workService = "/cabrank.example.v1.Work/"

// callMethod sends a CALL with an id of one digit.
func (p *peer) callMethod(id int, uri, args string, timeout time.Duration) *peer {
	p.t.Helper()
	text := fmt.Sprintf(`{"meta":{"type":1,"uuid":"00000000-0000-0000-0000-%012d"},"payload":{"uri":%q,"timeout":%d,"args":%s}}`, id, uri, timeout, args)
	testkit.Must(p.t, p.ws.WriteMessage(1, []byte(text)))
	return p
}

// workDescriptors writes what protoc --descriptor_set_out would, and returns the
// variables that name it.
func workDescriptors(t testing.TB) []string {
	t.Helper()
	set := &descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{protodesc.ToFileDescriptorProto(workpb.File_cabrank_example_v1_work_proto)}}
	encoded, err := proto.Marshal(set)
	testkit.Must(t, err)
	path := harness.WriteFile(t, "work.pb", encoded)
	return []string{"CABRANK_SOCKET_METHODS=" + workService + "*", "CABRANK_DESCRIPTORS=" + path}
}

// An old client calls methods of workers in other languages, which have no reflection.
func TestMethodsOfLanguages(t *testing.T) {
	env := workDescriptors(t)
	for _, lang := range []string{"ruby", "python", "node"} {
		t.Run(lang, func(t *testing.T) {
			c := harness.StartLangCabrankEnv(t, lang, env, "--socket-path", "/ws", "--workers", "1", "--transport", "unix")
			p := dial(t, c.Addr)
			for _, tc := range []struct{ method, args, want string }{
				{"Cpu", `{"n":10}`, `"args":{"value":55,"worker":`},
				{"Fail", `{"code":5,"message":"no café"}`, `"args":{"error":{"code":"not_found","message":"no café"}}`},
				{"Cpu", `{"n":"ten"}`, `"args":{"error":{"code":"invalid_argument","message":"cabrank.example.v1.CpuRequest: (line 1:6): invalid value for uint32 field n: \"ten\""}}`},
				{"Meta", `{}`, `"args":{}`},
				{"Nothing", `{}`, `"code":"unimplemented"`},
			} {
				p.wantCall(workService+tc.method, tc.args, tc.want)
			}
			wantExchange(t, "ws://"+c.Addr+"/ws", streamsOfWork)
			p.callMethod(9, workService+"Io", `{"millis":60000}`, 50*time.Millisecond).want(8, "")
			c.WaitMetric("cabrank_socket_calls_expired_total", 1)
			n := c.Metric("cabrank_door_calls_total", "door", "socket")
			testkit.Want(t, n >= 4, "%v calls came by sockets", n)
		})
	}
}

// streamsOfWork is how a stream of Count is taken, and errors are told.
const streamsOfWork = `join proto=juggler.1
> {"type":"call","id":1,"uri":"` + workService + `Count","args":{"to":3},"credit":1}
< {"type":"ack","id":1}
< {"type":"res","id":1,"args":{"value":1},"more":true}
> {"type":"credit","id":1,"credit":5}
< {"type":"res","id":1,"args":{"value":2},"more":true}
< {"type":"res","id":1,"args":{"value":3},"more":true}
< {"type":"res","id":1}
> {"type":"call","id":2,"uri":"` + workService + `Fail","args":{"code":9,"message":"no"}}
< {"type":"ack","id":2}
< {"type":"res","id":2,"error":{"code":"failed_precondition","message":"no"}}
> {"type":"call","id":3,"uri":"` + workService + `Nothing"}
< {"type":"nack","id":3,"error":{"code":404,"message":"no function of this URI"}}
`

// pythonPage calls a method as docs/socket.md has it.
const pythonPage = `<!doctype html><script>
const say = text => fetch("/said", {method: "POST", body: text})
const ws = new WebSocket("ws://%s/ws", "juggler.1")
ws.onerror = () => say("error")
ws.onmessage = e => {
  const m = JSON.parse(e.data)
  if (m.type == "welcome")
    ws.send(JSON.stringify({type: "call", id: 1, uri: "/fibonacci.FibonacciService/Fibonacci", args: {n: 100}}))
  if (m.type == "res") say(JSON.stringify(m.args.value))
}
</script>`

// A page in a browser calls a worker in Python, which describes itself.
func TestPageCallsPython(t *testing.T) {
	python := harness.Built(t, filepath.Join(harness.Root(t), ".deps", "fibonacci", "bin", "python3"), "scripts/install-deps.sh workers")
	var c *harness.Cabrank
	site := harness.NewSite(t, pythonPage, func() string { return c.Addr })
	c = harness.StartCabrankEnv(t, []string{
		"CABRANK_SOCKET_ORIGIN=" + site.Origin, "CABRANK_SOCKET_METHODS=/fibonacci.FibonacciService/*", "PYTHONDONTWRITEBYTECODE=1",
	}, "--socket-path", "/ws", "--workers", "1", "--", python, filepath.Join(harness.Root(t), "examples", "fibonacci", "server.py"))
	c.WaitReady(harness.LangBound)
	site.Show(t.TempDir())
	site.WantSaid(`"354224848179261915075"`)
}

// reflecting is the command line of a worker with these methods, and the file of them.
func reflecting(t testing.TB, methods string) (command []string, list string) {
	t.Helper()
	list = filepath.Join(t.TempDir(), "methods")
	writeList(t, list, methods)
	return []string{harness.OwnBinary(t), reflectingRole, list}, list
}

func writeList(t testing.TB, path, methods string) {
	t.Helper()
	testkit.Must(t, os.WriteFile(path, []byte(methods), 0o600))
}

// startReflecting starts cabrank over such workers.
func startReflecting(t testing.TB, worker []string, flags ...string) *harness.Cabrank {
	t.Helper()
	args := slices.Concat([]string{"--socket-path", "/ws", "--transport", "unix"}, flags, []string{"--"}, worker)
	c := harness.StartCabrankEnv(t, []string{"CABRANK_SOCKET_METHODS=/" + listedService + "/*"}, args...)
	c.WaitReady(harness.Patience)
	return c
}

// A roll of the workers loses no call, and what is new in their service can be called
// behind it.
func TestMethodsAfterRoll(t *testing.T) {
	worker, list := reflecting(t, "Old")
	socket := filepath.Join(harness.ShortTempDir(t), "c.sock")
	c := startReflecting(t, worker, "--workers", "2", "--min-ready", "2", "--control", socket)
	p, other := dial(t, c.Addr), dial(t, c.Addr)
	path := "/" + listedService + "/"
	p.wantCall(path+"New", "{}", `"code":"unimplemented","message":"there is no such method"`)
	stop, calls := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for ; ; n++ {
			select {
			case <-stop:
				calls <- n
				return
			default:
			}
			other.callMethod(2, path+"Old", "{}", harness.CallBound)
			for _, kind := range []string{`"type":8`, `"args":{}`} {
				if message, err := other.read(); err != nil || !strings.Contains(message, kind) {
					t.Errorf("during the roll: %s %v", message, err)
				}
			}
		}
	}()
	writeList(t, list, "Old New")
	testkit.Must(t, harness.NewOperator(t, socket).Run(harness.LangBound, "restart"))
	close(stop)
	if n := <-calls; n == 0 {
		t.Error("no call was made")
	}
	testkit.Eventually(t, harness.Patience, "the new method", func() bool {
		p.callMethod(3, path+"New", "{}", harness.CallBound).want(8, "")
		message, err := p.read()
		return err == nil && strings.Contains(message, `"args":{}`)
	})
}

// What the queue does not take is refused by 503; a socket that ends has its calls
// cancelled at the worker, and gives their slots back.
func TestMethodsThatWait(t *testing.T) {
	worker, _ := reflecting(t, "Wait Old")
	c := startReflecting(t, worker, "--workers", "1", "--slots", "1", "--queue", "1")
	p, other := dial(t, c.Addr), dial(t, c.Addr)
	path := "/" + listedService + "/"
	for id := range 2 {
		p.callMethod(id, path+"Wait", "{}", harness.CallBound).want(8, "")
	}
	p.callMethod(3, path+"Wait", "{}", harness.CallBound).want(7, `"code":503,"message":"cabrank: queue full"`)
	says := func(line string) func() bool {
		return func() bool { return strings.Contains(c.Log()+c.Output(), line) }
	}
	testkit.Eventually(t, harness.Patience, "the worker to have it", says("took "+path+"Wait"))
	p.ws.Close()
	testkit.Eventually(t, harness.Patience, "the worker to be told", says("cancelled "+path+"Wait"))
	other.wantCall(path+"Old", "{}", `"args":{}`)
	n := strings.Count(c.Log()+c.Output(), "took "+path+"Wait")
	testkit.Want(t, n <= 2, "%d calls ran", n)
	other.callMethod(5, "/other.Service/Method", "{}", 50*time.Millisecond).want(8, "") // of the broker, where nobody serves it
}
