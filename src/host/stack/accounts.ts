/** Set in the guest image: the program that runs parts under accounts of their own (image/run-as). */
const RUN_AS = 'CMR_RUN_AS'

/** `daemon` reads attestation reports and holds the keys; `worker` parses input from strangers. */
export type Account = 'daemon' | 'worker'

export interface Invocation {
  readonly file: string
  readonly args: readonly string[]
}

/** The command that runs a program under an account; outside of a guest, the program's own command. */
export function underAccount(account: Account, { file, args }: Invocation): Invocation {
  const runAs = process.env[RUN_AS]
  return runAs === undefined ? { file, args } : { file: runAs, args: [account, file, ...args] }
}

/** Parts with accounts of their own must be able to traverse the state directory to reach their part of it. */
export function stateDirMode(): number {
  return process.env[RUN_AS] === undefined ? 0o700 : 0o711
}

interface Directory {
  readonly path: string
  directory(name: string): string
}

/** Where the daemon keeps its files. */
export function daemonDir(state: Directory): string {
  return process.env[RUN_AS] === undefined ? state.path : state.directory('enclave')
}
