package wire

import (
	"encoding/binary"
	"hash/crc32"
)

// ReplyRoom is what stands before the body in an OP_MSG reply: header, flags and the kind byte of one section.
const ReplyRoom = HeaderSize + 4 + 1

// FinishReply completes an OP_MSG whose body document stands in buf after ReplyRoom bytes of room, which it fills in. With
// ChecksumPresent it appends the checksum. The result shares buf's memory where it fits.
func FinishReply(buf []byte, requestID, responseTo int32, flags Flags) []byte {
	length := len(buf)
	if flags&ChecksumPresent != 0 {
		length += 4
	}
	ReplyHead(buf, requestID, responseTo, flags, length-ReplyRoom)
	if flags&ChecksumPresent != 0 {
		buf = binary.LittleEndian.AppendUint32(buf, crc32.Checksum(buf, castagnoli))
	}
	return buf
}

// ReplyHead fills in what stands before a body document of size bytes that lies elsewhere, and returns it: buf's first ReplyRoom bytes.
func ReplyHead(buf []byte, requestID, responseTo int32, flags Flags, size int) []byte {
	head := buf[:ReplyRoom]
	putHeader(head, Header{Length: int32(ReplyRoom + size), RequestID: requestID, ResponseTo: responseTo, OpCode: OpMsg})
	binary.LittleEndian.PutUint32(head[HeaderSize:], uint32(flags))
	head[ReplyRoom-1] = 0
	return head
}
