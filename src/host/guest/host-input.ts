import { createHash } from 'node:crypto'
import { z } from 'zod'
import { OWN_SECRETS } from '../../protocol/own-secrets.ts'

/** The host's input was not measured, or does not have the expected form. */
export class HostInputError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'HostInputError'
  }
}

const secretsSchema = z.record(z.string(), z.string().min(1))
const configSchema = z.object({
  providers: z.record(z.string(), z.object({ api_key_env: z.string().optional() })),
})

/**
 * Checks the configuration against its SHA-256 on the measured command line (`cmr.config=`), so that the host can only
 * choose a configuration for which a measurement was signed.
 * @throws HostInputError when the command line has no such digest, more than one, or a different one
 */
export function checkConfiguration(bytes: Uint8Array, kernelCommandLine: string): void {
  const words = kernelCommandLine.trim().split(' ')
  const bound = words.filter((word) => word.startsWith('cmr.config='))
  if (bound.length !== 1) {
    throw new HostInputError('the command line needs exactly one cmr.config=')
  }
  const digest = createHash('sha256').update(bytes).digest('hex')
  if (bound[0] !== `cmr.config=${digest}`) {
    throw new HostInputError('the configuration is not the one on the measured command line')
  }
}

/**
 * Reads the secrets as environment variables.
 * @throws HostInputError when the text is malformed, or has a name that the configuration does not use, because other
 *   environment variables could change how the program runs
 */
export function readSecrets(
  text: string | undefined,
  configuration: string,
): Record<string, string> {
  if (text === undefined) return {}
  const secrets = secretsSchema.safeParse(parseJson(text))
  const config = configSchema.safeParse(parseJson(configuration))
  if (!secrets.success || !config.success) {
    throw new HostInputError('the secrets are not a JSON object of texts')
  }
  const wanted = Object.values(config.data.providers).map((provider) => provider.api_key_env)
  const known = new Set<string | undefined>([...OWN_SECRETS, ...wanted])
  const unknown = Object.keys(secrets.data).find((name) => !known.has(name))
  if (unknown !== undefined) {
    throw new HostInputError('the secrets hold a name that the configuration does not ask for')
  }
  return secrets.data
}

/** Undefined where the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
