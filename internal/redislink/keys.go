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
	// Several says that the caller takes several results: new with juggler.1.
	Several bool `json:"several,omitempty"`
	// More is the place of a result, from 1, if it is not the last one.
	More int `json:"more,omitempty"`
	// Count is how many results came before the last one, which has it.
	Count int `json:"count,omitempty"`
}

// Event is what is published on its channel.
type Event struct {
	ID   string          `json:"msg_uuid"`
	Args json.RawMessage `json:"args,omitempty"`
}

// WordsChannel is where callees hear what becomes of calls of a URI: new with juggler.1.
func WordsChannel(uri string) string { return "juggler.1:words:" + uri }

// Word is what is said there of one call.
type Word struct {
	ID string `json:"id"`
	// Cancel says that nobody wants the call any more.
	Cancel bool `json:"cancel,omitempty"`
	// Credit is how many results besides the last one it may have, from its beginning.
	Credit int `json:"credit,omitempty"`
}

// CreditKey has the credit of a call, for who missed the word.
func CreditKey(uri, id string) string { return "juggler.1:credit:{" + uri + "}:" + id }
