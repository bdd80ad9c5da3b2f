import { execPath } from 'node:process'

/**
 * The maximum size of a semi-space, half of V8's young generation, MiB. Buffers are freed when the objects that hold
 * them are collected. In a larger young generation, so many buffers accumulate before it is full that V8 runs full
 * collections instead, several times per second, to free them: after half a minute of load that took a third of the
 * daemon's CPU (docs/performance-findings.md, "Buffers and the young generation").
 */
const HALF_YOUNG_MIB = 8

/**
 * The command for a Node program of the router. It disables SIGUSR1, one digit away from a signal that operators send:
 * on it, Node would open its debugger on loopback, where every program on the machine could read keys and prompts.
 */
export function nodeProgram(file: string): {
  readonly file: string
  readonly args: readonly string[]
} {
  const args = [`--max-semi-space-size=${HALF_YOUNG_MIB}`, '--disable-sigusr1', file]
  return { file: execPath, args }
}
