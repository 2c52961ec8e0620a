package h2

import "errors"

// CompressionError says why a header block could not be decoded. The state of
// the decoder is lost with it.
//
// Errors: connection scope; the owner ends the connection with
// COMPRESSION_ERROR (RFC 9113, 4.3).
// Source: RFC 7541, sections named at the values.
type CompressionError uint8

// The ways in which a block can be undecodable, each with its own token.
const (
	_                      CompressionError = iota
	CompressionTruncated                    // the block ends within a field
	CompressionIntOverflow                  // an integer beyond our limit (5.1)
	CompressionBadIndex                     // index 0, or beyond the tables (2.3.3, 6.1)
	CompressionBadHuffman                   // EOS in a string, or bad padding (5.2)
	CompressionTableSize                    // size update above the announced limit (6.3)
	CompressionLateUpdate                   // size update after a field (4.2)
	CompressionBomb                         // more copied out of the table than a block may
	CompressionUpdates                      // more than two size updates (4.2)
)

var compressionTokens = [...]string{
	0:                      "",
	CompressionTruncated:   "hpack_truncated",
	CompressionIntOverflow: "hpack_int_overflow",
	CompressionBadIndex:    "hpack_bad_index",
	CompressionBadHuffman:  "hpack_bad_huffman",
	CompressionTableSize:   "hpack_table_size",
	CompressionLateUpdate:  "hpack_late_update",
	CompressionBomb:        "hpack_bomb",
	CompressionUpdates:     "hpack_many_updates",
}

// Token returns the stable name under which this refusal is counted.
func (e CompressionError) Token() string { return compressionTokens[e] }

// Error implements error.
func (e CompressionError) Error() string { return "h2: header block: " + e.Token() }

// MalformedError says which rule for HTTP messages a decoded header block
// breaks.
//
// Errors: stream scope; the whole block was decoded, so the decoder and the
// connection stay usable. The owner resets the stream with PROTOCOL_ERROR.
// Source: RFC 9113, sections named at the values; R12, R13.
type MalformedError uint8

// The ways in which a decoded block can be refused, each with its own token.
// If a block breaks several rules, the first one in the order of the block is
// reported.
const (
	_                           MalformedError = iota
	MalformedNameEmpty                         // a field without a name
	MalformedNameUppercase                     // an upper-case letter in a name (8.2.1)
	MalformedNameChar                          // not a token character in a name (8.2.1)
	MalformedValueChar                         // NUL, CR or LF in a value (8.2.1)
	MalformedValueSpace                        // space or tab around a value, requests only (8.2.1)
	MalformedConnectionField                   // connection, keep-alive and their like (8.2.2)
	MalformedTE                                // te other than "trailers" (8.2.2)
	MalformedPseudoUnknown                     // an undefined pseudo-header field, or :protocol (8.3)
	MalformedPseudoMisplaced                   // of a request in a response or the reverse (8.3)
	MalformedPseudoInTrailers                  // any pseudo-header field in trailers (8.1)
	MalformedPseudoAfterRegular                // a pseudo-header field behind a regular one (8.3)
	MalformedPseudoDuplicate                   // the same pseudo-header field twice (8.3)
	MalformedMethod                            // :method is not a token (8.3.1)
	MalformedMethodMissing                     // no :method (8.3.1)
	MalformedSchemeEmpty                       // :scheme is empty (8.3.1)
	MalformedSchemeMissing                     // no :scheme (8.3.1)
	MalformedPathEmpty                         // :path is empty (8.3.1)
	MalformedPathMissing                       // no :path (8.3.1)
	MalformedConnect                           // CONNECT with :scheme or :path, or without :authority (8.5)
	MalformedStatus                            // :status is not a number of three digits from 100 (8.3.2)
	MalformedStatusMissing                     // no :status (8.3.2)
	MalformedLength                            // content-length is no number, or there are two (8.1.1)
	MalformedBase64                            // a value that must be base64 and is not (WatchList.Base64)
	MalformedScheme                            // :scheme is not one (8.3.1, RFC 3986 3.1)
	MalformedAuthority                         // :authority is no host with or without a port, or has a user (8.3.1, RFC 3986 3.2)
	MalformedPath                              // :path begins with no "/", or is "*" and :method is not OPTIONS (8.3.1)
	MalformedHost                              // host is not what :authority is, or is there twice (8.3.1)
	MalformedPathChar                          // an octet in :path that no path or query has (RFC 3986 3.3, 3.4)
)

var malformedTokens = [...]string{
	0:                           "",
	MalformedNameEmpty:          "name_empty",
	MalformedNameUppercase:      "name_uppercase",
	MalformedNameChar:           "name_char",
	MalformedValueChar:          "value_char",
	MalformedValueSpace:         "value_space",
	MalformedConnectionField:    "connection_field",
	MalformedTE:                 "te",
	MalformedPseudoUnknown:      "pseudo_unknown",
	MalformedPseudoMisplaced:    "pseudo_misplaced",
	MalformedPseudoInTrailers:   "pseudo_in_trailers",
	MalformedPseudoAfterRegular: "pseudo_after_regular",
	MalformedPseudoDuplicate:    "pseudo_duplicate",
	MalformedMethod:             "method_invalid",
	MalformedMethodMissing:      "method_missing",
	MalformedSchemeEmpty:        "scheme_empty",
	MalformedSchemeMissing:      "scheme_missing",
	MalformedPathEmpty:          "path_empty",
	MalformedPathMissing:        "path_missing",
	MalformedConnect:            "connect_form",
	MalformedStatus:             "status_invalid",
	MalformedStatusMissing:      "status_missing",
	MalformedLength:             "content_length",
	MalformedBase64:             "base64",
	MalformedScheme:             "scheme_invalid",
	MalformedAuthority:          "authority_invalid",
	MalformedPath:               "path_invalid",
	MalformedHost:               "host_differs",
	MalformedPathChar:           "path_char",
}

// Token returns the stable name under which this refusal is counted.
func (e MalformedError) Token() string { return malformedTokens[e] }

// Error implements error.
func (e MalformedError) Error() string { return "h2: malformed header block: " + e.Token() }

// ErrListTooLarge is returned when the header list is larger than the limit
// of the decoder.
//
// Errors: stream scope; the whole block was decoded, so the decoder and the
// connection stay usable. The owner answers 431 or its like (RFC 9113, 10.5.1).
var ErrListTooLarge = errors.New("h2: header list too large")
