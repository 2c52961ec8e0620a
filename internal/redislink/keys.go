package redislink

import "encoding/json"

// Keys of juggler.0. The braces are hash tags: what is asked together is in one place
// of a Cluster.

// CallsKey is the list of calls of a URI.
func CallsKey(uri string) string { return "juggler:calls:{" + uri + "}" }

// CallTimeoutKey is there as long as a call may be answered.
func CallTimeoutKey(uri, id string) string { return "juggler:calls:timeout:{" + uri + "}:" + id }

// ResultsKey is the list of results of whoever called by that name.
func ResultsKey(conn string) string { return "juggler:results:{" + conn + "}" }

// ResultTimeoutKey is there as long as a result is of use.
func ResultTimeoutKey(conn, id string) string {
	return "juggler:results:timeout:{" + conn + "}:" + id
}

// Entry is a call in its list, or the result of one.
type Entry struct {
	Conn string          `json:"conn_uuid"`
	ID   string          `json:"msg_uuid"`
	URI  string          `json:"uri"`
	Args json.RawMessage `json:"args,omitempty"`
}

// Event is what is published on its channel.
type Event struct {
	ID   string          `json:"msg_uuid"`
	Args json.RawMessage `json:"args,omitempty"`
}
