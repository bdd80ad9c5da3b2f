import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CHIP_FILE_VARIABLE } from '../../src/enclave/open-machine.ts'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'
import { openProbeSession, type ProbeSession } from '../support/probe-session.ts'
import { startPacedProvider, type PacedProvider } from '../support/paced-provider.ts'
import { makeSealedWorld, SECRETS, type SealedWorld } from '../support/sealed.ts'
import { chatBody, startServe, type Serving } from '../support/serve.ts'

/**
 * The accounts of the guest image, with real accounts on this machine: the daemon and the worker run as other users, and
 * a program under the worker's account tries to reach what is not the worker's. The guest does the same
 * (test/image/probe.test.ts), which needs an image.
 */

const DAEMON = 10_002
const WORKER = 10_003

const NO_RIGHTS = ['--clear-groups', '--bounding-set=-all', '--inh-caps=-all', '--no-new-privs']

/** As image/run-as, in a directory that every account may enter. */
const RUN_AS = `#!/bin/sh
cd /
case $1 in daemon) id=${DAEMON} ;; worker) id=${WORKER} ;; *) exit 125 ;; esac
shift
exec setpriv --reuid $id --regid $id ${NO_RIGHTS.join(' ')} -- "$@"
`

function whyNot(): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0)
    return 'only root can change accounts'
  const account = ['--reuid', String(DAEMON), '--regid', String(DAEMON), ...NO_RIGHTS]
  const reads = `fs.accessSync(${JSON.stringify(tmpdir())}); fs.readFileSync('package.json')`
  try {
    const command = [...account, '--', process.execPath, '--eval', reads]
    execFileSync('setpriv', command, { cwd: PROJECT_DIR, stdio: 'ignore' })
    return undefined
  } catch {
    return 'setpriv (util-linux) is missing or may not change accounts, or other accounts cannot read this project'
  }
}

const reason = whyNot()
if (reason !== undefined) console.log(`accounts are not tried: ${reason}`)

describe.skipIf(reason !== undefined)("the worker's account", () => {
  let directory: string
  let provider: PacedProvider
  let world: SealedWorld
  let serving: Serving
  let session: ProbeSession
  let probe: ChildProcess | undefined
  const state = (name = '') => join(directory, 'state', name)

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'cmr-accounts-'))
    // As PID 1 makes them (image/init/root.c).
    mkdirSync(state())
    for (const [name, owner] of [
      ['enclave', DAEMON],
      ['storage', WORKER],
    ] as const) {
      mkdirSync(state(name), { mode: 0o700 })
      chownSync(state(name), owner, owner)
    }
    const runAs = join(directory, 'run-as')
    writeFileSync(runAs, RUN_AS, { mode: 0o755 })
    const chip = join(directory, 'chip.json')
    copyFileSync(process.env[CHIP_FILE_VARIABLE] ?? '', chip)
    chmodSync(chip, 0o644)
    chmodSync(directory, 0o711)
    provider = await startPacedProvider()
    world = await makeSealedWorld(provider.baseUrl)
    // The daemon reads the release's files there.
    chmodSync(world.directory, 0o711)
    serving = await startServe({
      config: world.config,
      stateDir: state(),
      env: { CMR_RUN_AS: runAs, [CHIP_FILE_VARIABLE]: chip, ...SECRETS },
    })
    session = await openProbeSession()
    const program = join(PROJECT_DIR, 'test/support/account-probe.ts')
    const args = ['worker', process.execPath, program, String(session.port)]
    probe = spawn(runAs, args, {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, PROBE_HOST: '127.0.0.1' },
    })
    await session.connected
  })
  afterAll(async () => {
    probe?.kill('SIGKILL')
    session.close()
    await serving.remove()
    provider.close()
    world.remove()
    rmSync(directory, { recursive: true })
  })

  const partOf = (name: string) => serving.at.parts[name] ?? 0

  it('is that of the worker, and not that of the daemon or the supervisor', async () => {
    expect((await serving.fetch('/v1/chat/completions', chatBody('quick'))).status).toBe(200)
    const owners = ['enclave', 'worker'].map((name) => statSync(`/proc/${partOf(name)}`).uid)
    expect(owners).toEqual([DAEMON, WORKER])
    expect(await session.ask('account')).toBe(WORKER)
  })

  it("reaches the ledger, which is the worker's", async () => {
    expect(await session.ask('list', state('storage'))).toBe('ok')
  })

  it("does not read the daemon's files, its environment or its memory", async () => {
    expect(await session.ask('owner', state('enclave'))).toBe(`${DAEMON} 700`)
    expect(await session.ask('list', state('enclave'))).toBe('EACCES')
    const files = readdirSync(state('enclave'))
    for (const name of [...files, 'any']) {
      expect(await session.ask('read', state(`enclave/${name}`))).toBe('EACCES')
    }
    for (const part of ['environ', 'mem', 'maps']) {
      expect(await session.ask('read', `/proc/${partOf('enclave')}/${part}`)).toBe('EACCES')
    }
    expect(await session.ask('list', `/proc/${partOf('enclave')}/fd`)).toBe('EACCES')
    expect(await session.ask('signal', partOf('enclave'))).toBe('EPERM')
  })

  it("does not read or change the supervisor's files, its environment or its memory", async () => {
    expect(await session.ask('list', state())).toBe('EACCES')
    expect(await session.ask('write', state('new'))).toBe('EACCES')
    for (const name of readdirSync(state(), { withFileTypes: true })) {
      if (!name.isFile() || name.name === 'worker.js') continue
      expect([name.name, await session.ask('read', state(name.name))]).toEqual([
        name.name,
        'EACCES',
      ])
    }
    expect(await session.ask('list', state('log'))).toBe('EACCES')
    for (const part of ['environ', 'mem', 'maps']) {
      expect(await session.ask('read', `/proc/${serving.at.pid}/${part}`)).toBe('EACCES')
    }
    expect(await session.ask('signal', serving.at.pid)).toBe('EPERM')
  })
})
