import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { startChild } from '../../src/host/stack/child.ts'
import { assignedPort } from './assigned-port.ts'
import { chatCaller, type Caller, type MockAddress, type System } from './system.ts'

/** The peer, with the versions of its dependencies from its own lock file. */
const PACKAGE = {
  private: true,
  dependencies: { '@portkey-ai/gateway': '1.15.2', hono: '4.9.7', '@hono/node-server': '1.13.5' },
  overrides: { hono: '4.9.7', '@hono/node-server': '1.13.5' },
}

/** The name of the peer on Node. */
export const PORTKEY_ON_NODE = 'portkey-node'

const ENTRY = 'node_modules/@portkey-ai/gateway/build/start-server.js'

/** The peer listens on every address; this preloaded module restricts it to loopback. */
const LOOPBACK_ONLY = `import { Server } from 'node:net'
const { listen } = Server.prototype
Server.prototype.listen = function (options, ...rest) {
  const port = typeof options === 'object' ? options.port : options
  return listen.call(this, { port, host: '127.0.0.1' }, rest.find((each) => typeof each === 'function'))
}
`

const STOP_TIMEOUT_MS = 2_000

/** Installs the peer into the scratch folder, once. @returns its directory */
export async function installPortkey(scratch: string): Promise<string> {
  const directory = join(scratch, 'portkey')
  if (existsSync(join(directory, ENTRY))) return directory
  mkdirSync(directory, { recursive: true })
  writeFileSync(join(directory, 'package.json'), JSON.stringify(PACKAGE))
  const args = ['install', '--no-audit', '--no-fund', '--ignore-scripts']
  await promisify(execFile)('npm', args, { cwd: directory, timeout: 120_000 })
  return directory
}

/** Path of the bundle that the package starts. */
export const portkeyEntry = (directory: string) => join(directory, ENTRY)

/** Requests in the peer's form: provider and address in headers. */
export function portkeyCaller({ port }: MockAddress): Caller {
  return chatCaller({
    authorization: 'Bearer bench',
    'x-portkey-provider': 'openai',
    'x-portkey-custom-host': `http://127.0.0.1:${port}/v1`,
  })
}

/** Starts the peer on Node, as its package does. */
export async function startPortkeyOnNode(mock: MockAddress, directory: string): Promise<System> {
  const preload = join(directory, 'loopback-only.mjs')
  writeFileSync(preload, LOOPBACK_ONLY)
  const port = await assignedPort()
  const args = ['--import', preload, portkeyEntry(directory), '--headless', `--port=${port}`]
  const child = await startChild({
    file: process.execPath,
    args,
    logFile: join(directory, 'portkey.log'),
    environment: { NODE_ENV: 'production' },
    stdin: 'ignore',
    extra: 'pipe',
  })
  return {
    name: PORTKEY_ON_NODE,
    port,
    processes: () => ({ node: [child.pid] }),
    callers: [portkeyCaller(mock)],
    model: (behaviour) => behaviour,
    stop: () => child.stop(STOP_TIMEOUT_MS),
  }
}
