import * as z from 'zod'

/** Members of Intel's signed documents that a rating needs (Intel PCS API v4; TCB info version 3). */

const svn = z.int().min(0)
const components = z.array(z.looseObject({ svn })).length(16)
const hex = (bytes: number) => z.string().regex(new RegExp(`^[0-9A-Fa-f]{${2 * bytes}}$`))

const rated = { tcbStatus: z.string(), advisoryIDs: z.array(z.string()).default([]) }
const isvLevels = z.array(z.looseObject({ tcb: z.looseObject({ isvsvn: svn }), ...rated }))

/** When the document is due to be replaced. */
const due = { nextUpdate: z.iso.datetime() }

const moduleIdentity = { mrsigner: hex(48), attributes: hex(8), attributesMask: hex(8) }

export const tcbInfoSchema = z.looseObject({
  id: z.literal('TDX'),
  ...due,
  pceId: hex(2),
  tcbEvaluationDataNumber: z.int().min(0),
  tdxModule: z.looseObject(moduleIdentity),
  tdxModuleIdentities: z
    .array(z.looseObject({ id: z.string(), ...moduleIdentity, tcbLevels: isvLevels }))
    .default([]),
  tcbLevels: z.array(
    z.looseObject({
      tcb: z.looseObject({
        sgxtcbcomponents: components,
        pcesvn: svn,
        tdxtcbcomponents: components,
      }),
      ...rated,
    }),
  ),
})
export type TcbInfo = z.output<typeof tcbInfoSchema>

export const enclaveIdentitySchema = z.looseObject({ ...due, tcbLevels: isvLevels })
export type EnclaveIdentity = z.output<typeof enclaveIdentitySchema>
