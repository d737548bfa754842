package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

// Debian has no Cap'n Proto library for Go, so the capnp tool makes and reads bodies: one process makes all
// requests before the first ask, and one reads all replies after the last. Streams of messages may follow each other
// without anything between them.

func runCapnp(input []byte, arguments ...string) ([]byte, error) {
	command := exec.Command("capnp", append([]string{arguments[0], "-I/usr/include"}, arguments[1:]...)...)
	command.Stdin = bytes.NewReader(input)
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("capnp %s: %w", strings.Join(arguments, " "), err)
	}
	return output, nil
}

// typeIDOf returns the id of a schema's struct: 16 hexadecimal digits.
func typeIDOf(schema, name string) (string, error) {
	text, err := runCapnp(nil, "compile", "-ocapnp", schema)
	if err != nil {
		return "", err
	}
	match := regexp.MustCompile(`struct ` + name + ` @0x([0-9a-f]{16})`).FindSubmatch(text)
	if match == nil {
		return "", fmt.Errorf("%s has no struct %s", schema, name)
	}
	return string(match[1]), nil
}

// encode returns a stream for each text, such as (numbers = [1.5]).
func encode(schema, name string, texts []string) ([][]byte, error) {
	stream, err := runCapnp([]byte(strings.Join(texts, "\n")), "encode", schema, name)
	if err != nil {
		return nil, err
	}
	var messages [][]byte
	for len(stream) > 0 {
		size := frameSize(stream)
		if size == 0 {
			return nil, fmt.Errorf("capnp encode wrote %d bytes that are no message", len(stream))
		}
		messages = append(messages, stream[:size])
		stream = stream[size:]
	}
	return messages, nil
}

// decode returns a text for each message of a stream.
func decode(schema, name string, stream []byte) ([]string, error) {
	text, err := runCapnp(stream, "decode", "--short", schema, name)
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"), nil
}

// frameSize returns the size of the message that a stream begins with; 0 if it begins with none.
func frameSize(stream []byte) int {
	if len(stream) < 8 {
		return 0
	}
	segments := uint64(binary.LittleEndian.Uint32(stream)) + 1
	table := (4 + 4*segments + 7) / 8 * 8 // the number of segments, and the size of each in words
	if segments > 512 || table > uint64(len(stream)) || binary.LittleEndian.Uint32(stream[4:]) == 0 {
		return 0
	}
	size := table
	for k := uint64(0); k < segments; k++ {
		size += 8 * uint64(binary.LittleEndian.Uint32(stream[4+4*k:]))
	}
	if size > uint64(len(stream)) {
		return 0
	}
	return int(size)
}
