package scenario

import (
	"time"

	"github.com/cabrank/cabrank/lab/internal/caller"
)

// Arm is one way to do it.
type Arm struct {
	Name  string `key:"name,required"`
	About string `key:"about"`
	// Optional arms are left out, with a line that says so, where the front or the
	// command is not installed.
	Optional bool    `key:"optional"`
	Workers  Workers `key:"workers"`
	Front    Front   `key:"front"`
	Client   Client  `key:"client"`
	Gateway  Gateway `key:"gateway"`
}

// Program is a worker that comes with the lab.
type Program string

// The programs. ProgramNone means a command.
const (
	ProgramNone   Program = ""
	ProgramWorker Program = "worker" // sleeps and computes as requests ask: package work
	ProgramEcho   Program = "echo"   // answers raw clients at the least cost: package rawh2
)

// Full is what a worker does with a call when all of its slots are taken.
type Full string

// What a full worker does. FullUnlimited has no slots: all calls run at once.
const (
	FullUnlimited Full = "unlimited"
	FullQueue     Full = "queue"
	FullKeep      Full = "keep"
	FullRefuse    Full = "refuse"
)

// Environ is what is added to an environment: NAME=value, sorted. A file has NAME: value.
type Environ []string

// Workers are the workers of an arm, all alike.
type Workers struct {
	// Program runs, or Command in Dir: words with {port}, {host}, {addr}, {slots},
	// {threads} (as many), {worker} and {index} in them, as `cabrank run` fills them in.
	Program Program  `key:"program" oneof:"worker|echo"`
	Command []string `key:"command" split:" "`
	Dir     string   `key:"dir"`
	// Try is a command that succeeds where Command can run, and Install says what to do
	// where it does not; both are empty if nothing is to be tried.
	Try     []string `key:"try" split:" "`
	Install string   `key:"install"`
	// Count is how many there are when a block begins.
	Count int `key:"count,alone" range:"1..100"`
	// Port is where the first one listens, the others behind it; 0 is one that is free.
	Port int `key:"port" range:"0..65000"`
	// Slots is how many calls each runs at a time, Full what it does with more.
	Slots int  `key:"slots" range:"0..1000000"`
	Full  Full `key:"full" oneof:"queue|keep|refuse|unlimited"`
	// CPU is the quota of each in cores, before it is scaled to the machine; 0 is none.
	CPU float64 `key:"cpu" range:"0..1000"`
	Env Environ `key:"env"`
	// Cores are those that all of them run on, as taskset counts; empty: all.
	Cores string `key:"cores"`
	// MaxAge is how old connections get before the worker ends them; 0 is no limit.
	MaxAge time.Duration `key:"max_age" range:"0s..24h"`
}

// FrontKind is what stands between clients and workers.
type FrontKind string

// The fronts; docs/lab-run.md says what each is.
const (
	FrontNone       FrontKind = "none"
	FrontDNS        FrontKind = "dns"
	FrontDNAT       FrontKind = "dnat"
	FrontCabrank    FrontKind = "cabrank"
	FrontHAProxyTCP FrontKind = "haproxy-tcp"
	FrontHAProxy    FrontKind = "haproxy"
	FrontEnvoy      FrontKind = "envoy"
	FrontNginx      FrontKind = "nginx"
	FrontNghttpx    FrontKind = "nghttpx"
)

// Who ends TLS: the front, or a HAProxy that copies bytes to the front, which is a part of it
// to whoever counts.
const (
	TLSItself  = "itself"
	TLSHAProxy = "haproxy"
)

// Front is what clients connect to.
type Front struct {
	Kind FrontKind `key:"kind,alone" oneof:"none|dns|dnat|cabrank|haproxy-tcp|haproxy|envoy|nginx|nghttpx"`
	// Policy is how it chooses a worker, in its own words, such as LEAST_REQUEST;
	// empty is its default.
	Policy string `key:"policy"`
	// Flags are added to the command line of cabrank, Env to its environment.
	Flags []string `key:"flags" split:" "`
	Env   Environ  `key:"env"`
	// Starts says that cabrank starts the workers, in place of being told where they
	// are.
	Starts bool `key:"starts"`
	// CPU is its quota in cores, before it is scaled; 0 is none.
	CPU float64 `key:"cpu" range:"0..1000"`
	// TLS is who ends that of raw clients: the front itself, or a HAProxy before it, which
	// counts as a part of it; empty: they have none.
	TLS string `key:"tls" oneof:"itself|haproxy"`
	// TTL is that of the records of the name server, in whole seconds.
	TTL time.Duration `key:"ttl" range:"0s..24h"`
	// Cores are those that it runs on, as taskset counts; empty: all.
	Cores string `key:"cores"`
}

// Client is how calls get out.
type Client struct {
	// Connections is how calls share them.
	Connections caller.Strategy `key:"connections,alone"`
	// Processes is how many generators there are; more are used where descriptors
	// ask for it.
	Processes int `key:"processes" range:"1..64"`
	// DNSInterval is how often grpc-go asks a name server at most; 0 is its default.
	DNSInterval time.Duration `key:"dns_interval" range:"0s..24h"`
	// Raw says that calls are made at the least cost; the data of the load says how many
	// connections there are: package rawh2.
	Raw bool `key:"raw"`
	// Cores are those that generators run on, as taskset counts; empty: all.
	Cores string `key:"cores"`
	// Way is how calls are written.
	Way caller.Way `key:",inline"`
}

// Gateway is a program that makes the gRPC calls for callers who speak HTTP to it. It is
// started behind the front, and ends with the block.
type Gateway struct {
	// Command runs, in Dir: words with {target} in them, which is what it has to call,
	// and {addr}, {host} and {port}, where it has to listen. PORT is in its environment.
	// It is empty if there is none.
	Command []string `key:"command" split:" "`
	Dir     string   `key:"dir"`
	// Env has the same words in it.
	Env Environ `key:"env"`
}
