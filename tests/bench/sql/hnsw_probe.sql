select id from thoughts order by embedding <=> %(vector)s::vector limit 10
