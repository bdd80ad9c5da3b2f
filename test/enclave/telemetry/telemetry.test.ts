import { spawnSync } from 'node:child_process'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { execPath } from 'node:process'
import { text } from 'node:stream/consumers'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { Telemetry } from '../../../src/enclave/telemetry/telemetry.ts'
import type { Span } from '../../../src/protocol/telemetry.ts'
import { listen } from '../../support/listen.ts'

const SETTLED: Span = {
  trace_id: '1'.repeat(32),
  span_id: '2'.repeat(16),
  parent_id: null,
  name: 'settle',
  kind: 'internal',
  start: 0,
  end: 1,
  error: false,
  attributes: {
    'cmr.operation_seconds': 1,
    'cmr.customer_name': 'XNAMEX',
    'gen_ai.operation.name': 'chat',
    'gen_ai.usage.input_tokens': 3,
  },
}

test('a collector that is to get no traces gets the metrics made of spans, and nothing else of them', async () => {
  const received = new Map<string, string>()
  const take = async (request: IncomingMessage, response: ServerResponse) => {
    received.set(request.url ?? '', await text(request))
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  }
  const collector = createServer((request, response) => void take(request, response))
  const port = await listen(collector)
  try {
    const telemetry = await Telemetry.open(() => 1_000, {
      name: 'r',
      telemetry: {
        otlp_endpoint: `http://127.0.0.1:${port}`,
        metrics: true,
        traces: false,
        customer_names: true,
        interval_seconds: 3_600,
      },
    })
    telemetry.exchange({
      instance: 'a',
      metrics: '',
      open_requests: 0,
      resting: {},
      spans: [SETTLED],
    })
    await telemetry.close()
    expect([...received.keys()]).toEqual(['/v1/metrics'])
    const body = received.get('/v1/metrics') ?? ''
    expect(body).toContain('gen_ai.client.operation.duration')
    expect(body).toContain('gen_ai.client.token.usage')
    expect(body).not.toContain('XNAMEX')
  } finally {
    collector.closeAllConnections()
    collector.close()
  }
})

test('a daemon without a collector does not load OpenTelemetry', () => {
  const daemon = fileURLToPath(new URL('../../../src/enclave/main.ts', import.meta.url))
  const script = `const { registerHooks } = await import('node:module')
    const loaded = []
    registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) })
    await import(${JSON.stringify(daemon)})
    process.stdout.write(JSON.stringify(loaded), () => process.exit(0))`
  const { stdout } = spawnSync(execPath, ['--input-type=module', '--eval', script], {
    encoding: 'utf8',
    timeout: 60_000,
  })
  const loaded: unknown = JSON.parse(stdout)
  expect(loaded).toContain(pathToFileURL(daemon).href)
  expect(stdout).not.toContain('/@opentelemetry/')
})
