// Command rclone is rclone with one storage, the local file system, and one command: serve s3. The tests of the backups
// of chapter 05 start it as their S3 server. The whole rclone compiles four times as many packages.
package main

import (
	_ "github.com/rclone/rclone/backend/local"
	"github.com/rclone/rclone/cmd"
	_ "github.com/rclone/rclone/cmd/serve/s3"
)

func main() {
	cmd.Main()
}
