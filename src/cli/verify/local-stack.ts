import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Option } from 'commander'
import { z } from 'zod'
import { readLocalFile } from '../../host/stack/local-file.ts'
import { readSettings } from '../../host/stack/settings.ts'
import { StartError } from '../../host/stack/start-error.ts'
import { InputError } from './input-error.ts'
import { createRouterClient, type RouterClient } from './router-client.ts'

/** The option that fills in everything for the local router. */
export function localOption(): Option {
  return new Option(
    '--local',
    'the router that npm start runs on this machine (simulated platform)',
  )
}

/** The router that `npm start` runs on this machine, for `--local`. */
export interface LocalStack {
  /** Its TLS address, so that the end of the connection is verified too. */
  readonly tlsBaseUrl: string
  readonly baseUrl: string
  readonly apiKey: string
  /** Path of its release root. */
  readonly rootKey: string
  /** The release root of its attested provider, if it has one. */
  readonly providerRootJwk: unknown
}

const configSchema = z.looseObject({
  providers: z.record(
    z.string(),
    z.looseObject({ attestation: z.looseObject({ root_key: z.looseObject({}).optional() }) }),
  ),
})

/** @throws InputError when no stack runs on the state directory (`STATE_DIR`, as `npm start` reads it) */
export function readLocalStack(env: NodeJS.ProcessEnv): LocalStack {
  try {
    const { stateDir } = readSettings(env)
    const local = readLocalFile(stateDir)
    const config = configSchema.parse(
      JSON.parse(readFileSync(join(stateDir, 'config.json'), 'utf8')),
    )
    const [providerRootJwk] = Object.values(config.providers).flatMap(
      ({ attestation }) => attestation.root_key ?? [],
    )
    return {
      tlsBaseUrl: local.tls_base_url,
      baseUrl: local.base_url,
      apiKey: local.api_key,
      rootKey: local.root_key,
      providerRootJwk,
    }
  } catch (cause) {
    if (cause instanceof StartError) throw new InputError(`--local: ${cause.message}`, { cause })
    throw cause
  }
}

const usageSchema = z.object({ data: z.array(z.object({ receipt_id: z.string().nullable() })) })

/**
 * The text of a receipt of the local router: of this id, or of its latest answer.
 * @throws InputError when there is none
 */
export async function readLocalReceipt(local: LocalStack, id: string | undefined): Promise<string> {
  const client = createRouterClient(local.baseUrl, 'evidence')
  const wanted = id ?? (await latestReceiptId(client, local.apiKey))
  const { status, body } = await client.get(`/v1/receipts/${wanted}`, bearer(local.apiKey))
  if (status !== 200) throw new InputError(`--local: there is no receipt ${wanted}`)
  return new TextDecoder().decode(body)
}

async function latestReceiptId(client: RouterClient, apiKey: string): Promise<string> {
  const { status, body } = await client.get('/v1/usage?limit=20', bearer(apiKey))
  if (status !== 200) throw new InputError(`--local: the usage list answers ${status}`)
  const { data } = usageSchema.parse(JSON.parse(new TextDecoder().decode(body)))
  const id = data.find(({ receipt_id: receiptId }) => receiptId !== null)?.receipt_id
  if (typeof id === 'string') return id
  throw new InputError('--local: the router has answered nothing yet; ask it something first')
}

function bearer(apiKey: string): Record<string, string> {
  return { authorization: `Bearer ${apiKey}` }
}
