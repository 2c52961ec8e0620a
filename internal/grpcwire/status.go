package grpcwire

const upperHex = "0123456789ABCDEF"

// AppendMessage appends a status message as the value of grpc-message.
//
// Shape: octets outside of printable ASCII, and the percent sign, become
// %XX. So does a space at either end: the specification would leave it, but a
// strict receiver refuses such a value (RFC 9113, 8.2.1).
// Source: gRPC over HTTP/2, Responses, "Status-Message".
func AppendMessage(dst []byte, message string) []byte {
	for i := range len(message) {
		c := message[i]
		atEnd := i == 0 || i == len(message)-1
		if c < ' ' || c > '~' || c == '%' || c == ' ' && atEnd {
			dst = append(dst, '%', upperHex[c>>4], upperHex[c&0xf])
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}

// DecodeMessage appends the text of a grpc-message.
//
// Errors: none. A percent sign without two hexadecimal digits stands for
// itself, as the specification asks, and the text need not be valid UTF-8.
// Source: gRPC over HTTP/2, Responses, "Status-Message".
func DecodeMessage(dst, value []byte) []byte {
	for i := 0; i < len(value); i++ {
		c := value[i]
		if c == '%' && i+2 < len(value) {
			high, low := unhex(value[i+1]), unhex(value[i+2])
			if high < 16 && low < 16 {
				c = high<<4 | low
				i += 2
			}
		}
		dst = append(dst, c)
	}
	return dst
}

// unhex returns the value of a hexadecimal digit, or 16 for any other octet.
func unhex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 16
}
