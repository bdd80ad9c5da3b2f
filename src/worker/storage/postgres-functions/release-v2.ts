import { FLAT_PLANS, WAIT_FOR_DISK } from './fragments-v2.ts'

/**
 * Releases the reservations and open claims of requests that cost nothing. Returns for each request, in order, whether it
 * had a reservation, as JSON. The commit waits for the disk.
 */
export const statement = `CREATE OR REPLACE FUNCTION cmr_release_v2(rounds jsonb, lock_ms integer)
RETURNS SETOF text LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
${FLAT_PLANS} AS $cmr$
DECLARE
  id text;
  gone record;
BEGIN
  ${WAIT_FOR_DISK}
  PERFORM cmr_lock_customers_v1(ARRAY(SELECT r.customer_id FROM reservations AS r
    WHERE r.request_id = ANY (ARRAY(SELECT jsonb_path_query(rounds, '$[*].entries[*].request_id') #>> '{}'))), lock_ms);
  FOR id IN SELECT jsonb_path_query(rounds, '$[*].entries[*].request_id') #>> '{}' LOOP
    DELETE FROM idempotent_requests AS i WHERE i.request_id = id AND i.done = 0;
    DELETE FROM reservations AS r WHERE r.request_id = id RETURNING r.customer_id, r.amount_nano INTO gone;
    IF FOUND THEN
      UPDATE customers AS c SET reserved_nano = c.reserved_nano - gone.amount_nano
        WHERE c.customer_id = gone.customer_id;
      RETURN NEXT 'true';
    ELSE
      RETURN NEXT 'false';
    END IF;
  END LOOP;
END
$cmr$`
