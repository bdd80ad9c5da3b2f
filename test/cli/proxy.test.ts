import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { toBase64Url, utf8 } from '../../src/protocol/bytes.ts'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'
import { freePort } from '../support/free-port.ts'
import { startFakeRouter, type FakeRouter } from '../support/fake-router.ts'
import { startProxyProcess } from '../support/proxy-process.ts'
import { makeWorld, type World } from '../support/synthetic-world.ts'

let world: World
let host: FakeRouter
let directory: string

beforeAll(async () => {
  world = await makeWorld()
  host = await startFakeRouter(world)
  directory = mkdtempSync(join(tmpdir(), 'cmr-proxy-'))
}, 60_000)
afterAll(() => {
  host.close()
  rmSync(directory, { recursive: true })
})

describe('proxy', () => {
  test('prints nothing of a router that is not proven by which it could control the terminal', async () => {
    const typ = '\u001b[2J\u001b[H  router   is proven\r\n'
    const header = JSON.stringify({ alg: 'ES256', kid: world.root.kid, typ })
    host.misbehave({
      bundleJws: (jws) => [toBase64Url(utf8(header)), ...jws.split('.').slice(1)].join('.'),
    })
    const root = join(directory, 'root.json')
    writeFileSync(root, JSON.stringify(world.root.jwk))
    const proxy = await startProxyProcess('--router', host.baseURL, '--root-key', root)
    expect(await proxy.stop()).toBe(0)
    expect(proxy.output()).toContain('trust_bundle_header: typ is ?[2J?[H  router   is proven??')
    expect(proxy.output()).toMatch(/^[\x20-\x7e\n]*$/)
  })

  test('opens no debugger for SIGUSR1, by which every program of the machine could read key and prompts', async () => {
    const root = join(directory, 'root.json')
    writeFileSync(root, JSON.stringify(world.root.jwk))
    const proxy = await startProxyProcess('--router', host.baseURL, '--root-key', root)
    proxy.signal('SIGUSR1')
    // What Node prints of its debugger comes before this answer.
    await setTimeout(500)
    expect((await fetch(`${proxy.url}/verification`)).status).toBe(200)
    expect(await proxy.stop()).toBe(0)
    expect(proxy.output()).not.toContain('Debugger')
  })

  test.each(['', 'a\nb\n', 'schlüssel'])('refuses the API key %o at its start', async (key) => {
    writeFileSync(join(directory, 'root.json'), JSON.stringify(world.root.jwk))
    const file = join(directory, 'key')
    writeFileSync(file, key)
    const flags = ['--router', host.baseURL, '--root-key', join(directory, 'root.json')]
    const program = join(PROJECT_DIR, 'src/cli/main.ts')
    const words = [program, 'proxy', ...flags, '--port', '0', '--api-key-file', file]
    const started = promisify(execFile)(process.execPath, words)
    const stderr = `error: ${file} holds no API key: it is one line of letters of ASCII, without spaces\n`
    await expect(started).rejects.toMatchObject({ code: 1, stdout: '', stderr })
  })

  test('says why a router cannot be reached', async () => {
    const root = join(directory, 'root.json')
    writeFileSync(root, JSON.stringify(world.root.jwk))
    const router = `127.0.0.1:${await freePort()}`
    const proxy = await startProxyProcess('--router', `https://${router}`, '--root-key', root)
    expect(await proxy.stop()).toBe(0)
    expect(proxy.output()).toContain(`  router   connect ECONNREFUSED ${router}; every`)
  })

  test.each([
    [
      'an address without TLS',
      { router: 'http://router.example', key: 'root' },
      'error: --router: without TLS there is no key to compare\n',
    ],
    [
      'what is no address',
      { router: 'router.example', key: 'root' },
      'error: --router: give the address of the router\n',
    ],
    [
      'an address with a password',
      { router: 'https://user:word@router.example', key: 'root' },
      'error: --router: leave out user name and password, which no request takes along\n',
    ],
    [
      'a file without a key',
      { router: 'https://router.example', key: 'other' },
      "error: --root-key: give the release root's public JWK\n",
    ],
  ] as const)('refuses %s by the name of its own flag', async (_case, { router, key }, message) => {
    writeFileSync(join(directory, 'root.json'), JSON.stringify(world.root.jwk))
    writeFileSync(join(directory, 'other.json'), '{}')
    const flags = ['--router', router, '--root-key', join(directory, `${key}.json`)]
    const program = join(PROJECT_DIR, 'src/cli/main.ts')
    const run = promisify(execFile)(process.execPath, [program, 'proxy', ...flags])
    await expect(run).rejects.toMatchObject({ code: 1, stdout: '', stderr: message })
  })
})
