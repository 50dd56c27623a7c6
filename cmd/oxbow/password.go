package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"oxbow/internal/auth"
)

func passwordCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "password NAME@DATABASE",
		Short: "Salt a password for the configuration",
		Long: "Salt a password for the configuration: reads it from the terminal, or a line of standard input, and prints the user's entry, which belongs under the\n" +
			"key users. Its roles are yours to choose. What it prints lets nobody log in who doesn't know the password.",
		Args: oneArgument("NAME@DATABASE"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkUser(args[0]); err != nil {
				return err
			}
			password, err := readPassword(c.InOrStdin(), c.ErrOrStderr())
			if err != nil {
				return err
			}
			return writeUser(c.OutOrStdout(), args[0], password)
		},
	}
}

// readPassword asks for a password twice on a terminal, unseen; elsewhere it is the first line.
func readPassword(in io.Reader, prompt io.Writer) (string, error) {
	f, ok := in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		line, err := bufio.NewReader(io.LimitReader(in, 4096)).ReadString('\n')
		if err != nil && err != io.EOF {
			return "", fmt.Errorf("read the password: %w", err)
		}
		return strings.TrimRight(line, "\r\n"), nil
	}
	var typed [2]string
	for i, text := range []string{"Password: ", "Again: "} {
		fmt.Fprint(prompt, text)
		b, err := term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(prompt)
		if err != nil {
			return "", fmt.Errorf("read the password: %w", err)
		}
		typed[i] = string(b)
	}
	if typed[0] != typed[1] {
		return "", fmt.Errorf("the two passwords differ")
	}
	return typed[0], nil
}

// checkUser refuses users who have no password.
func checkUser(user string) error {
	at := strings.LastIndexByte(user, '@')
	switch {
	case at <= 0 || at == len(user)-1:
		return fmt.Errorf("%q is no user: write NAME@DATABASE", user)
	case user[at+1:] == "$external":
		return fmt.Errorf("%q has no password: a user of $external logs in with its certificate, and its entry has roles only", user)
	}
	return nil
}

// writeUser prints an entry of the configuration's key users.
func writeUser(w io.Writer, user, password string) error {
	if err := checkUser(user); err != nil {
		return err
	}
	at := strings.LastIndexByte(user, '@')
	lines := fmt.Sprintf("  %q:\n", user)
	for _, m := range auth.Mechanisms() {
		c, err := auth.NewCredential(m, user[:at], password)
		if err != nil {
			return err
		}
		lines += fmt.Sprintf("    %s: %q\n", strings.ToLower(string(m)), c.String())
	}
	_, err := io.WriteString(w, lines+"    roles: [readWrite]\n")
	return err
}
