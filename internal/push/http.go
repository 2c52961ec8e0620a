package push

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strings"

	"github.com/cabrank/cabrank/internal/socket"
)

// handler answers requests over HTTP/1.1.
//
// Concurrency: immutable.
type handler struct {
	gate  *gate
	paths map[string]func(context.Context, *request) (string, error)
}

func newHandler(sockets Sockets, gate *gate) *handler {
	act := func(action socket.Action) func(context.Context, *request) (string, error) {
		return func(ctx context.Context, r *request) (string, error) { return command(ctx, sockets, action, r) }
	}
	return &handler{gate: gate, paths: map[string]func(context.Context, *request) (string, error){
		"/v1/publish":     func(ctx context.Context, r *request) (string, error) { return publish(ctx, sockets, r) },
		"/v1/broadcast":   act(socket.Broadcast),
		"/v1/disconnect":  act(socket.Disconnect),
		"/v1/unsubscribe": act(socket.Unsubscribe),
	}}
}

// connKey is the key of a request's connection in its context.
type connKey struct{}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.gate.opens(r.Header.Get("Authorization")) {
		w.Header().Set("Connection", "close") // nothing more of it is read
		refuse(w, http.StatusUnauthorized, noToken)
		return
	}
	if c, ok := r.Context().Value(connKey{}).(*conn); ok {
		c.good()
		defer c.done()
	}
	do := h.paths[r.URL.Path]
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")) // what is malformed is not JSON
	switch {
	case r.Header.Get("Origin") != "":
		refuse(w, http.StatusForbidden, "this is not for web pages")
	case do == nil:
		refuse(w, http.StatusNotFound, "want /v1/publish, /v1/broadcast, /v1/disconnect or /v1/unsubscribe")
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		refuse(w, http.StatusMethodNotAllowed, "want POST")
	case kind != "application/json":
		refuse(w, http.StatusUnsupportedMediaType, "want Content-Type: application/json")
	default:
		h.serve(w, r, do)
	}
}

func (h *handler) serve(w http.ResponseWriter, r *http.Request, do func(context.Context, *request) (string, error)) {
	if !h.gate.enter(r.Context()) {
		return // who asks has gone
	}
	defer h.gate.leave()
	asked, err := read(w, r)
	if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
		refuse(w, http.StatusRequestEntityTooLarge, "longer than 1 MiB")
		return
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, inWords(err))
		return
	}
	id, err := do(r.Context(), asked)
	if err != nil {
		text, bad := told(err)
		refuse(w, map[bool]int{true: http.StatusBadRequest, false: http.StatusServiceUnavailable}[bad], text)
		return
	}
	answer(w, http.StatusOK, answered{ID: id})
}

// read reads one JSON object, all of it, with fields that are known.
func read(w http.ResponseWriter, r *http.Request) (*request, error) {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostBytes))
	decoder.DisallowUnknownFields()
	asked := new(request)
	if err := decoder.Decode(asked); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON object")
	}
	return asked, nil
}

// inWords says what is wrong with a request without the words of Go.
func inWords(err error) string {
	wrong := (*json.UnmarshalTypeError)(nil)
	switch {
	case errors.Is(err, io.EOF), errors.As(err, &wrong) && wrong.Field == "":
		return "want a JSON object"
	case wrong == nil:
		return strings.TrimPrefix(err.Error(), "json: ")
	case wrong.Type.Kind() == reflect.String:
		return wrong.Field + ": not a text"
	case wrong.Type.Kind() == reflect.Bool:
		return wrong.Field + ": not true or false"
	}
	return wrong.Field + ": not a whole number"
}

// answered is the body of an answer.
type answered struct {
	ID    string  `json:"id,omitempty"`
	Error *reason `json:"error,omitempty"`
}

type reason struct {
	Message string `json:"message"`
}

func refuse(w http.ResponseWriter, status int, text string) {
	answer(w, status, answered{Error: &reason{text}})
}

func answer(w http.ResponseWriter, status int, what answered) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(what) //nolint:errchkjson // texts always are JSON; who has gone needs no answer
}
