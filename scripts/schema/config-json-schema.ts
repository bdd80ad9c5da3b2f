import { z } from 'zod'
import { configSchema } from '../../src/protocol/config.ts'

/**
 * The JSON Schema (draft 2020-12) of a configuration as it is written, before defaults are filled in. Rules that
 * span several members (src/protocol/config-rules.ts) are beyond it.
 */
export function configJsonSchema(): object {
  const { $schema, ...schema } = z.toJSONSchema(configSchema, { io: 'input' })
  return {
    $schema,
    title: 'Confidential Model Router: configuration',
    description: 'docs/configuration.md explains every member.',
    ...schema,
  }
}
