package config

import "go.yaml.in/yaml/v3"

// Hooks are commands around the life of each worker, with their placeholders
// still in place (see Placeholders); an empty one is none. Each may take
// Workers.BootTimeout.
type Hooks struct{ BeforeStart, AfterReady, BeforeStop []string }

func hooks() record[Hooks] {
	return record[Hooks]{
		form: "{before_start: COMMAND, after_ready: COMMAND, before_stop: COMMAND}",
		table: []part[Hooks]{
			{"before_start", none, "is run before each start of a worker; if it fails the start has failed", commandLine{},
				func(h *Hooks) any { return &h.BeforeStart }},
			{"after_ready", none, "is run when a worker has become ready; its failure is only logged", commandLine{},
				func(h *Hooks) any { return &h.AfterReady }},
			{"before_stop", none, "is run before a worker gets SIGTERM, when its calls have ended; its failure is only logged", commandLine{},
				func(h *Hooks) any { return &h.BeforeStop }},
		},
		check: func(*Hooks, *yaml.Node, *outline) {},
	}
}

// WarmUp is the call that a worker must answer before it gets others. Each attempt
// may take Workers.BootTimeout.
type WarmUp struct {
	Method  string // "/package.Service/Method"; empty: none
	Message []byte // serialized, without the prefix of gRPC
}

func warmUp() record[WarmUp] {
	return record[WarmUp]{
		form: "{method: /package.Service/Method, message: BASE64}",
		table: []part[WarmUp]{
			{"method", none, "unary method that each worker is called with once, before it gets any other call", methodName{},
				func(w *WarmUp) any { return &w.Method }},
			{"message", none, "message of that call, serialized, in base64; none is a message without fields", base64Bytes{maxWarmUp},
				func(w *WarmUp) any { return &w.Message }},
		},
		check: func(w *WarmUp, node *yaml.Node, at *outline) {
			if w.Method == "" && len(w.Message) > 0 {
				at.fault(node, at.key, "has a message for no method", "a method beside it")
			}
		},
	}
}
