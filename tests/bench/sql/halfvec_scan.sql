select id from bench.halfvec_copy order by e <=> %(vector)s::vector::halfvec limit 10
