import { z } from 'zod'
import { KEY_CONFIG_TYPE } from '../../protocol/ehbp.ts'
import type { Handler } from '../context.ts'
import type { Operation } from '../http/operation.ts'
import { binary } from '../http/reply.ts'

/** GET /.well-known/hpke-keys: the key to which request bodies may be encrypted (EHBP, RFC 9458 section 3). */
export const getHpkeKeyConfig: Handler = async (_request, { link }) =>
  binary(await link.hpkeKeyConfig(), KEY_CONFIG_TYPE)

export const HPKE_KEYS_OPERATION: Operation = {
  summary: 'Show the key that request bodies may be encrypted to',
  tag: 'Attestation',
  answer: {
    [KEY_CONFIG_TYPE]: {
      name: 'HpkeKeyConfiguration',
      schema: z.string().meta({ format: 'binary', description: 'RFC 9458 section 3.' }),
    },
  },
  errors: ['service_unavailable'],
}
