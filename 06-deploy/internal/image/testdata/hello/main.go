// Command hello is a program that compiles quickly for another processor.
package main

func main() { println("hello") }
