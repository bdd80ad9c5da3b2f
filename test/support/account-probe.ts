import { accessSync, constants, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'

/**
 * A program that tries what it is told to, with the rights of the account it runs under: it connects to the test, reads
 * one attempt a line, `{"do", "at"}`, and answers each with `ok` or the error's code. It stands for a worker that an
 * attacker has taken over, so it may do anything that its account can.
 *
 * `node account-probe.ts <port>`; the test's address is in PROBE_HOST, or is that of QEMU's host.
 */

const [, , port] = process.argv
const host = process.env['PROBE_HOST'] ?? '10.0.2.2'

const ATTEMPTS: Readonly<Record<string, (at: string) => unknown>> = {
  account: () => process.getuid?.(),
  read: (at) => void readFileSync(at),
  /** What a small file says. */
  text: (at) => readFileSync(at, 'utf8').trim(),
  list: (at) => void readdirSync(at),
  write: (at) => writeFileSync(at, 'x'),
  /** The owner and the permissions of a file. */
  owner: (at) => {
    const { uid, mode } = statSync(at)
    return `${uid} ${(mode & 0o777).toString(8)}`
  },
  /** The accounts of all processes that can be seen. */
  processes: (at) => {
    const names = readdirSync(at).filter((name) => /^\d+$/.test(name))
    return [...new Set(names.flatMap((name) => accountOf(`${at}/${name}`)))].toSorted(
      (one, other) => one - other,
    )
  },
  /** A socket of the file system can be connected to by those who may write to it. */
  connect: (at) => accessSync(at, constants.W_OK),
  signal: (at) => void process.kill(Number(at), 0),
}

function accountOf(process: string): number[] {
  try {
    return [statSync(process).uid]
  } catch {
    return []
  }
}

function attempt(line: string): unknown {
  const { do: what, at } = JSON.parse(line)
  try {
    return ATTEMPTS[what]?.(at) ?? 'ok'
  } catch (error) {
    return error instanceof Error && 'code' in error ? error.code : 'unknown'
  }
}

const test = connect(Number(port), host)
await once(test, 'connect')
for await (const line of createInterface({ input: test })) {
  test.write(`${JSON.stringify(attempt(line))}\n`)
}
process.exit(0)
