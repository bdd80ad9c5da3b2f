import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { build, type Plugin } from 'esbuild'
import { startWorkerd } from './floor.ts'
import { portkeyCaller, portkeyEntry } from './portkey.ts'
import type { MockAddress, System } from './system.ts'

/**
 * The package contains only a bundle for Node, but its application also runs in workers. Cuts off the code after the
 * application (listening, banner), and replaces unused Node modules with empty ones.
 */
const LISTENING = /const\{injectWebSocket:.*$/s
const SERVED = /\w+\(\{fetch:(\w+)\.fetch,port:/
const ABSENT =
  /^(avsc|ioredis|ws|fs|fs\/promises|path|https|url|zlib|@hono\/node-server|@hono\/node-ws)$/

/**
 * Starts the peer in workerd.
 * @throws Error when the package's bundle has an unknown format
 */
export async function startPortkeyInWorkerd(
  mock: MockAddress,
  directory: string,
  scratch: string,
): Promise<System> {
  return startWorkerd({
    name: 'portkey-workerd',
    directory: join(scratch, 'portkey-workerd'),
    script: await bundleForWorkerd(directory),
    flags: ['nodejs_compat'],
    bindings: {},
    callers: [portkeyCaller(mock)],
  })
}

async function bundleForWorkerd(directory: string): Promise<string> {
  const text = readFileSync(portkeyEntry(directory), 'utf8')
  const app = SERVED.exec(text)?.[1]
  if (app === undefined || !LISTENING.test(text)) throw new Error('its bundle has another form')
  const { outputFiles } = await build({
    stdin: {
      contents: `${text.replace(LISTENING, '').replace(/^#!.*\n/, '')};export default ${app}`,
      resolveDir: directory,
    },
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    conditions: ['workerd', 'worker', 'browser'],
    external: ['node:*', 'crypto', 'stream', 'util', 'buffer', 'events'],
    banner: { js: "globalThis.process ??= {};globalThis.process.argv=['','','--headless'];" },
    plugins: [emptyModules],
    logLevel: 'silent',
  })
  return outputFiles[0]?.text ?? ''
}

const emptyModules: Plugin = {
  name: 'empty-modules',
  setup(bundle) {
    bundle.onResolve({ filter: ABSENT }, ({ path }) => ({ path, namespace: 'absent' }))
    bundle.onLoad({ filter: /.*/, namespace: 'absent' }, () => ({
      contents:
        'module.exports = new Proxy(function () {}, { get: (_, name) => (name === "__esModule" ? false : class {}) })',
      loader: 'js',
    }))
  },
}
