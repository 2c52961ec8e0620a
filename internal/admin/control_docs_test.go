package admin

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// What programs read is written down: every field of the status, of an event and
// of a request is in docs/control.md.
func TestControlIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/control.md")
	testkit.Must(t, err)
	for _, shape := range []any{
		Status{}, Event{}, RestartRequest{}, DrainRequest{}, ScaleRequest{}, UpgradeRequest{}, StopRequest{},
	} {
		for _, name := range fieldsOf(reflect.TypeOf(shape)) {
			if !documented(string(text), name) {
				t.Errorf("docs/control.md does not say what %s of %T is", name, shape)
			}
		}
	}
}

// documented finds a name as `name`, as part of a longer one, or as "name":.
func documented(text, name string) bool {
	for _, form := range []string{"`" + name + "`", "." + name + "`", "`" + name + "[]", "`" + name + ".", "\"" + name + "\":"} {
		if strings.Contains(text, form) {
			return true
		}
	}
	return false
}

// fieldsOf returns the JSON names of a struct's fields and of those in them.
func fieldsOf(shape reflect.Type) []string {
	for shape.Kind() == reflect.Pointer || shape.Kind() == reflect.Slice {
		shape = shape.Elem()
	}
	if shape.Kind() != reflect.Struct || shape == reflect.TypeFor[time.Time]() {
		return nil
	}
	var names []string
	for field := range shape.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "" {
			names = append(names, name)
		}
		names = append(names, fieldsOf(field.Type)...)
	}
	return names
}

// Programs can rely on lists being lists and on times that say so when there
// are none.
func TestStatusAsJSON(t *testing.T) {
	got, err := json.Marshal(WorkerStatus{Name: "worker-1", Since: time.Unix(0, 0).UTC()})
	testkit.Must(t, err)
	want := `{"name":"worker-1","index":0,"state":"","since":"1970-01-01T00:00:00Z","pid":0,"address":"","generation":0,` +
		`"slots":0,"in_flight":0,"ghosts":0,"served":0,"restarts":null,"retired":null}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
