/** Set in the guest image: the program by which parts run under accounts of their own (image/run-as). */
const RUN_AS = 'CMR_RUN_AS'

/** `daemon` reads attestation reports and holds the keys; `worker` parses what strangers send. */
export type Account = 'daemon' | 'worker'

export interface Invocation {
  readonly file: string
  readonly args: readonly string[]
}

/** The command that runs a program under an account; elsewhere than in a guest, the command itself. */
export function underAccount(account: Account, { file, args }: Invocation): Invocation {
  const runAs = process.env[RUN_AS]
  return runAs === undefined ? { file, args } : { file: runAs, args: [account, file, ...args] }
}

/** Accounts of their own must pass through the state directory to reach their part of it. */
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
