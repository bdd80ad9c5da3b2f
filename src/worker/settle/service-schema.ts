import { z } from 'zod'

/** The extension object `service` in the interface description; built by `serviceObject`. */
export const serviceObjectSchema = z.object({
  receipt_id: z.uuid().optional().describe('Id of the signed receipt; absent without one.'),
  requested_route: z.string().describe('Canonical selector that was asked for.'),
  routed_model: z.string().describe('The concrete route that served.'),
  failover: z.boolean().describe('Whether a route beside the one asked for served.'),
})
