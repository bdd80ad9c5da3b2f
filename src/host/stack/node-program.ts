import { execPath } from 'node:process'

/**
 * The largest half of V8's young generation, MiB. Buffers are freed when the objects that hold them are collected. In a larger young
 * generation so many gather before it is full that V8 collects everything instead, several times a second, for their sake: after
 * half a minute of load that was a third of the daemon's CPU (docs/performance-findings.md, "Buffers and the young generation").
 */
const HALF_YOUNG_MIB = 8

/**
 * How a program of the router is started that handles bytes in Node. At SIGUSR1, one digit beside the signal that operators send, Node
 * would open its debugger on loopback, where every program of the machine could read keys and prompts.
 */
export function nodeProgram(file: string): {
  readonly file: string
  readonly args: readonly string[]
} {
  const args = [`--max-semi-space-size=${HALF_YOUNG_MIB}`, '--disable-sigusr1', file]
  return { file: execPath, args }
}
