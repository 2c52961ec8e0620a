package redis

import "encoding/json"

// Keys of juggler.0. The braces are hash tags: what is asked together is in one place
// of a Cluster.

func callsKey(uri string) string { return "juggler:calls:{" + uri + "}" }

func callTimeoutKey(uri, id string) string { return "juggler:calls:timeout:{" + uri + "}:" + id }

func resultsKey(conn string) string { return "juggler:results:{" + conn + "}" }

func resultTimeoutKey(conn, id string) string {
	return "juggler:results:timeout:{" + conn + "}:" + id
}

// stored is a call in its list, or the result of one.
type stored struct {
	Conn string          `json:"conn_uuid"`
	ID   string          `json:"msg_uuid"`
	URI  string          `json:"uri"`
	Args json.RawMessage `json:"args,omitempty"`
}

// published is an event on its channel.
type published struct {
	ID   string          `json:"msg_uuid"`
	Args json.RawMessage `json:"args,omitempty"`
}
